"""Train to the end, whatever ranks die on the way, and whatever ends this program: started again, it goes on.

python driver.py             # on this machine: its own Ray, four ranks
python driver.py --attach    # on Kubernetes, as a Ray job: on the WorkerGroup of group.yaml
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import checkpoints
import ray

from workergroups import RankDiedError, RayClassWithInitArgs, RayResourcePool, RayWorkerGroup, attach

RANKS = 4


@contextmanager
def ranks_on_kubernetes() -> Iterator[Callable[[], RayWorkerGroup]]:
    """Yield what returns the WorkerGroup, whose dead ranks the operator replaces, once all of them exist."""
    yield partial(attach("resilient-training", timeout=600).renew, timeout=600)


@contextmanager
def ranks_on_this_machine() -> Iterator[Callable[[], RayWorkerGroup]]:
    """Yield what creates the ranks, after those that exist have ended: here, nobody else replaces them."""
    from trainer import Trainer

    ray.init(address="local", num_cpus=RANKS, include_dashboard=False)
    with RayResourcePool([RANKS], use_gpu=False, max_colocate_count=1) as pool:
        groups: list[RayWorkerGroup] = []

        def create() -> RayWorkerGroup:
            for group in groups:
                group.close()
            groups.append(RayWorkerGroup(pool, RayClassWithInitArgs(Trainer)))
            return groups[-1]

        yield create


def train(group: RayWorkerGroup, directory: Path, steps: int, steps_per_checkpoint: int) -> None:
    """Train from the last checkpoint to the end.

    Raises:
        RankDiedError: A rank died, or all were replaced, at any moment.
    """
    attempt = checkpoints.begin_attempt(directory)
    checkpoint = checkpoints.latest(directory)
    step = group.restore(str(attempt), str(checkpoint) if checkpoint else None)[0]
    print(f"attempt {attempt.name}, incarnation {group.incarnation}: from step {step}", flush=True)
    try:
        while step < steps:
            gradients = group.gradient(str(attempt))
            group.update(str(attempt), [sum(values) / group.world_size for values in zip(*gradients, strict=True)])
            step += 1
            if step % steps_per_checkpoint == 0 or step == steps or group.notice is not None:
                group.save(str(attempt))
                group.answer_notice()
    finally:
        print(f"attempt {attempt.name} ends after step {step}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--attach", action="store_true", help="to the WorkerGroup, instead of starting ranks here")
    parser.add_argument("--checkpoints", type=Path, default=Path("checkpoints"), help="a directory that all ranks have")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--steps-per-checkpoint", type=int, default=20)
    options = parser.parse_args()
    directory = options.checkpoints.absolute()
    with ranks_on_kubernetes() if options.attach else ranks_on_this_machine() as next_ranks:
        while True:
            try:
                train(next_ranks(), directory, options.steps, options.steps_per_checkpoint)
                break
            except RankDiedError as death:
                print(f"rank {death.rank} of incarnation {death.incarnation}: {death.reason}", flush=True)
    last = checkpoints.latest(directory)
    print(last, checkpoints.load(last)["weights"])


if __name__ == "__main__":
    main()
