"""What a training of verl has shown, from the lines that it prints."""

from tools.gpu_machine.checks.training import _STEP, Run

LINE = "\x1b[36m(TaskRunnerV1 pid=1)\x1b[0m step:{} - actor/entropy:2.6 - critic/score/mean:{} - critic/score/max:0.8"


def test_steps_and_scores_are_read():
    lines = [LINE.format(1, "0.011"), LINE.format(12, "np.float64(0.5)"), "step: none", "timing_s/step:6.3"]
    found = [match.groups() for match in map(_STEP.search, lines) if match]
    assert found == [("1", "0.011"), ("12", "0.5")]


def test_a_training_has_learned_if_it_ends_well_with_a_score_beyond_chance():
    assert Run(0, [1, 2], [0.01, 0.6]).has_learned
    assert not Run(0, [1, 2], [0.6, 0.01]).has_learned
    assert not Run(1, [1, 2], [0.01, 0.6]).has_learned
    assert not Run(0).has_learned
