"""PPO with a single controller: this program has the loop but no model; the ranks of four groups have the models.

python train.py             # on this machine: its own Ray, two pools, four groups
python train.py --attach    # on Kubernetes, as a Ray job: on the WorkerGroups of groups.yaml
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import algorithms
import ray
import torch
from task import make_prompts

from workergroups import (
    DataProto,
    RayClassWithInitArgs,
    RayResourcePool,
    RayWorkerGroup,
    attach,
    create_colocated_worker_cls,
)

POLICY_RANKS = 2
VALUE_RANKS = 1
GAMMA = 1.0
LAM = 0.95
KL_COEFFICIENT = 0.001


@dataclass
class Roles:
    """A group for each role; two roles share the processes of a pool."""

    actor: RayWorkerGroup
    reference: RayWorkerGroup
    critic: RayWorkerGroup
    reward: RayWorkerGroup


@contextmanager
def roles_on_this_machine() -> Iterator[Roles]:
    """Create pools and groups, on GPUs if there is one for each process."""
    from workers import Actor, Critic, Reference, Reward

    use_gpu = torch.cuda.device_count() >= POLICY_RANKS + VALUE_RANKS
    policy = {"actor": RayClassWithInitArgs(Actor), "reference": RayClassWithInitArgs(Reference)}
    value = {"critic": RayClassWithInitArgs(Critic), "reward": RayClassWithInitArgs(Reward)}
    ray.init(address="local", num_cpus=4, include_dashboard=False)
    with (
        RayResourcePool([POLICY_RANKS], use_gpu=use_gpu, max_colocate_count=1) as policy_pool,
        RayResourcePool([VALUE_RANKS], use_gpu=use_gpu, max_colocate_count=1) as value_pool,
        RayWorkerGroup(policy_pool, create_colocated_worker_cls(policy)) as policy_group,
        RayWorkerGroup(value_pool, create_colocated_worker_cls(value)) as value_group,
    ):
        yield Roles(**policy_group.spawn(policy), **value_group.spawn(value))


@contextmanager
def roles_on_kubernetes() -> Iterator[Roles]:
    """Attach to the WorkerGroups of groups.yaml, which keep running when this program ends."""
    yield Roles(
        **attach("ppo-policy").spawn(["actor", "reference"]),
        **attach("ppo-value").spawn(["critic", "reward"]),
    )


def compute_advantages(batch: DataProto) -> dict[str, float]:
    """Add rewards, advantages and returns to the batch, and return their metrics."""
    columns = batch.batch
    mask, old, ref = columns["response_mask"], columns["old_log_probs"], columns["ref_log_prob"]
    rewards = algorithms.apply_kl_penalty(columns["token_level_scores"], old, ref, mask, KL_COEFFICIENT)
    advantages, returns = algorithms.gae(rewards, columns["values"], mask, GAMMA, LAM)
    columns["token_level_rewards"] = rewards
    columns["advantages"] = algorithms.masked_whiten(advantages, mask)
    columns["returns"] = returns
    return {
        "reward": columns["token_level_scores"].sum(-1).mean().item(),
        "kl": algorithms.masked_mean(old - ref, mask).item(),
        "response_length": mask.sum(-1).mean().item(),
    }


def train_step(roles: Roles, batch: DataProto) -> dict[str, float]:
    """Generate responses, compute their rewards, and update the actor and the critic."""
    batch = batch.union(roles.actor.generate_sequences(batch))
    # These do not block, so both pools compute at the same time.
    futures = [
        roles.reward.compute_reward(batch),
        roles.critic.compute_values(batch),
        roles.reference.compute_ref_log_prob(batch),
    ]
    batch = batch.union(roles.actor.compute_log_prob(batch))
    for future in futures:
        batch = batch.union(future.get())
    metrics = compute_advantages(batch)
    critic_update = roles.critic.update_critic(batch)
    updates = [roles.actor.update_actor(batch), critic_update.get()]
    by_rank = {name: values for update in updates for name, values in update.meta_info["metrics"].items()}
    return metrics | {name: sum(values) / len(values) for name, values in by_rank.items()}


def train(roles: Roles, steps: int, batch_size: int, seed: int) -> Iterator[dict[str, float]]:
    """Yield the metrics of each step."""
    for group in (roles.actor, roles.reference, roles.critic):
        group.init_model(seed)
    generator = torch.Generator().manual_seed(seed)
    start = time.monotonic()
    for step in range(steps):
        metrics = train_step(roles, DataProto.from_dict({"prompts": make_prompts(batch_size, generator)}))
        yield {"step": step, "seconds": round(time.monotonic() - start, 2)} | metrics


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--attach", action="store_true", help="to WorkerGroups, instead of starting ranks here")
    parser.add_argument("--steps", type=int, default=80)
    parser.add_argument("--batch-size", type=int, default=256, help="prompts of a step")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--metrics", type=Path, default=Path("metrics.csv"), help="the file to write, for plot.py")
    options = parser.parse_args()
    with (
        roles_on_kubernetes() if options.attach else roles_on_this_machine() as roles,
        options.metrics.open("w") as file,
    ):
        for metrics in train(roles, options.steps, options.batch_size, options.seed):
            writer = csv.DictWriter(file, metrics)
            if metrics["step"] == 0:
                writer.writeheader()
            writer.writerow(metrics)
            print(" ".join(f"{name}={value:.4g}" for name, value in metrics.items()), flush=True)


if __name__ == "__main__":
    main()
