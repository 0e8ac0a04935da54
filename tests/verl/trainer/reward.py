"""The reward of a response, for verl's `reward.custom_reward_function`: its length, so that responses differ."""


def compute_score(data_source, solution_str, ground_truth, extra_info=None, **more):
    return float(len(solution_str.split()))
