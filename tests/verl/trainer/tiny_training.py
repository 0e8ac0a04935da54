"""The command that trains the tiny model on CPUs, its environment, and what it prints."""

import re

RANK = re.compile(r"verl's rank is in placement group (\w+) on node (\w+)")
STEP = re.compile(r"step:(\d+) - .*actor/grad_norm:(?:np\.float64\()?([\d.e-]+)")


def environment():
    """What is in the environment of all of Ray's processes, since verl gives them a runtime environment of its own.

    This directory must be on the path of their modules.
    """
    return {
        "VERL_USE_EXTERNAL_MODULES": "cpu_platform,random_engine",
        "VERL_PLATFORM": "cpu",
        "VERL_ENGINE_DEVICE": "cuda",  # verl has registered FSDP for this name, and it works on CPUs
    }


def command(python, directory, nodes, use_v1):
    """Two steps with a rank on each node. The model and the data are in a directory that all nodes have."""
    return [
        *(python, "-m", "verl.trainer.main_ppo"),
        f"data.train_files={directory}/data.parquet",
        f"data.val_files={directory}/data.parquet",
        "data.train_batch_size=4",
        "data.max_prompt_length=16",
        "data.max_response_length=32",
        "data.dataloader_num_workers=0",
        f"actor_rollout_ref.model.path={directory}/model",
        "actor_rollout_ref.model.use_remove_padding=False",
        "+actor_rollout_ref.model.override_config.attn_implementation=eager",
        "algorithm.adv_estimator=grpo",
        "actor_rollout_ref.actor.strategy=fsdp2",
        "actor_rollout_ref.actor.ppo_mini_batch_size=4",
        "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2",
        "actor_rollout_ref.actor.fsdp_config.use_torch_compile=False",
        "actor_rollout_ref.rollout.name=random",
        "actor_rollout_ref.rollout.n=2",
        "actor_rollout_ref.rollout.tensor_model_parallel_size=1",
        "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=2",
        "actor_rollout_ref.rollout.agent.num_workers=1",
        "reward.custom_reward_function.path=pkg://reward",
        "reward.num_workers=1",
        "trainer.device=cpu",
        f"trainer.nnodes={nodes}",
        "trainer.n_gpus_per_node=1",
        "trainer.total_training_steps=2",
        "trainer.val_before_train=False",
        "trainer.resume_mode=disable",
        "trainer.logger=[console]",
        f"trainer.use_v1={use_v1}",
    ]


def norms(printed):
    """The norm of the gradient in each step."""
    return {int(step): float(norm) for step, norm in STEP.findall(printed)}


def places(printed):
    """The placement group and the node of each rank, as random_engine prints them."""
    return sorted(RANK.findall(printed))
