"""Measure: ``python -m bench.weights MODEL TRAINERS ROLLOUTS PLACE``, such as ``8B 2 2 together``.

PLACE ``together``: each rollout rank shares a device with a trainer rank. ``apart``: the trainer has the first half of
the devices, the rollout the other half.
"""

from __future__ import annotations

import math
import os
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import ray
from ray.exceptions import RayError

from workergroups import (
    Dispatch,
    RayClassWithInitArgs,
    RayResourcePool,
    RayWorkerGroup,
    Weights,
    WeightShard,
    check_weights,
    register,
)

from .model import SIZES, cut, shapes
from .others import OTHERS, Others

REPEATS = 5


class Rank(Others):
    """Has its part of a model in bf16, on a device of its own if there are enough; it may see only that."""

    def __init__(self, model: str, training: bool, place: str, *, sees_others: bool = True) -> None:
        super().__init__()
        import torch

        self.training = training
        self.device = torch.device("cpu")
        if devices := torch.cuda.device_count():
            half = devices // 2 if place == "apart" else 0
            index = self.rank % (half or devices) + (0 if training else half)
            if not sees_others:
                os.environ["CUDA_VISIBLE_DEVICES"], index = str(index), 0
            self.device = torch.device("cuda", index)
            torch.cuda.set_device(self.device)
        self.weights = Weights()
        self.parts: dict[str, Any] = {}
        for name, (shape, dim) in shapes(SIZES[model]).items():
            start, size = cut(shape, 0 if training else dim, self.rank, self.world_size)
            local = torch.empty(size, dtype=torch.bfloat16, device=self.device)
            self.parts[name] = WeightShard(local.normal_() if training else local.zero_(), shape, start)

    @register(Dispatch.ONE_TO_ALL)
    def only(self, way: str) -> None:
        """Publish by this way alone."""
        from workergroups.transfers import transports

        if way != "CUDA IPC":
            transports._ipc = lambda tensors: None
        if way != "NIXL":
            sys.modules["nixl"] = None  # type: ignore[assignment]

    @register(Dispatch.ONE_TO_ALL)
    def step(self) -> None:
        """Change all parts: what has not changed is not read again."""
        for part in self.parts.values():
            part.tensor.neg_()

    @register(Dispatch.ONE_TO_ALL)
    def publish(self) -> Any:
        """Let the rollout read the parts."""
        return self.weights.publish(self.parts)

    @register(Dispatch.ONE_TO_ALL)
    def receive(self, published: Any) -> Any:
        """Read the parts."""
        return self.weights.receive(published, self.parts, timeout=60)

    @register(Dispatch.ONE_TO_ALL)
    def passport(self) -> Any:
        """Return which weights the rank has."""
        return self.weights.passport

    @register(Dispatch.ONE_TO_ALL)
    def digests(self) -> tuple[float, Any]:
        """Return how long the digests of all parts take, and the digests."""
        from workergroups.weights.parts import held, parts_of

        began = time.perf_counter()
        digests = held(parts_of(self.parts))
        return time.perf_counter() - began, digests

    @register(Dispatch.ONE_TO_ALL)
    def give(self) -> Any:
        """Return the shards themselves, as programs do that know no other way."""
        return {name: (part.start, part.tensor.cpu()) for name, part in self.parts.items()}

    @register(Dispatch.ONE_TO_ALL)
    def take(self, *given: Any) -> None:
        """Fill the parts from the shards, each of which is a block of rows."""
        import torch

        for name, part in self.parts.items():
            self.keep(part, torch.cat([shards[name][1] for shards in given]).to(self.device))
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    @register(Dispatch.ONE_TO_ALL)
    def peak(self) -> float:
        """Return GiB of the device's memory at the peak since the last time, beyond the weights themselves."""
        import torch

        if self.device.type == "cpu":
            return 0.0
        peak = torch.cuda.max_memory_allocated(self.device)
        torch.cuda.reset_peak_memory_stats(self.device)
        return float(peak - sum(part.tensor.nbytes for part in self.parts.values())) / 2**30


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds that a call takes, and what it returns."""
    began = time.perf_counter()
    result = call()
    return time.perf_counter() - began, result


def measure(title: str, trainers: Any, rollouts: Any, nbytes: int) -> None:
    """Print a row of the table: the first hand-over, and the median of the next ones."""
    rollouts.peak()
    pairs = []
    for _ in range(REPEATS + 1):
        trainers.step()
        publishing, published = timed(trainers.publish)
        receiving, passports = timed(partial(rollouts.receive, published))
        pairs.append((publishing, receiving))
    check_weights([*trainers.passport(), *passports])
    first, later = pairs[0], [statistics.median(each) for each in zip(*pairs[1:], strict=True)]
    row(title, sum(first), later[0], later[1], nbytes, max(rollouts.peak()))


def measure_other(title: str, trainer: Any, rollout: Any, nbytes: int) -> None:
    """Print a row of the table for a way of others, which publishes and receives at once."""
    forming, hand_over = timed(lambda: OTHERS[title](trainer, rollout))
    rollout.peak()
    seconds = []
    for _ in range(REPEATS + 1):
        trainer.step()
        seconds.append(timed(hand_over)[0])
    row(title, forming + seconds[0], None, statistics.median(seconds[1:]), nbytes, max(rollout.peak()))
    if [digests for _, digests in trainer.digests()] != [digests for _, digests in rollout.digests()]:
        raise RuntimeError(f"{title}: the rollout has other weights than the trainer")


def row(title: str, first: float, publishing: float | None, receiving: float, nbytes: int, peak: float) -> None:
    """Print a row of the table."""
    before = 0.0 if publishing is None else publishing
    print(
        f"| {title} | {first:.2f} s | {'' if publishing is None else f'{publishing:.3f} s'} | {receiving:.3f} s "
        f"| {nbytes / (before + receiving) / 1e9:.1f} GB/s | {peak:.2f} GiB |",
        flush=True,
    )


def main(model: str = "0.02B", trainers: str = "2", rollouts: str = "2", place: str = "together") -> None:
    """Hand over the same model in all ways."""
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"  # all ranks see all devices, so that one is enough
    store = int(os.environ.get("STORE", 6 * 2**30))
    ray.init(address="local", num_cpus=32, include_dashboard=False, object_store_memory=store)
    nbytes = 2 * sum(math.prod(size) for size, _ in shapes(SIZES[model]).values())
    print(f"{model}, {nbytes / 1e9:.2f} GB in bf16, {trainers} ranks to {rollouts}, {place}")
    print("| | first | publish | receive | both | memory of the rollout |\n|---|--:|--:|--:|--:|--:|")
    # Between processes of one device, NIXL takes minutes.
    many = ray.cluster_resources().get("GPU", 0) > 1
    ways = ("CUDA IPC", "NIXL", "TCP") if many else ("CUDA IPC", "TCP")
    # Whole tensors come from one rank, to which they are equal if there is one other.
    others = OTHERS if many and place == "apart" and (trainers, rollouts) == ("1", "1") else ()
    for way in (*ways, *others):
        try:
            hand_over(way, model, (int(trainers), int(rollouts)), place, nbytes)
        except RayError as error:
            print(f"| {way} | {str(error).strip().splitlines()[-1]} |", flush=True)


def hand_over(way: str, model: str, ranks: tuple[int, int], place: str, nbytes: int) -> None:
    """Measure one way, with its own ranks; with the last one, also what programs do without `Weights`."""
    pools = [RayResourcePool([count], use_gpu=False, max_colocate_count=1) for count in ranks]
    sees = {"sees_others": way not in OTHERS}
    classes = [RayClassWithInitArgs(Rank, model, training, place, **sees) for training in (True, False)]
    with (
        pools[0],
        pools[1],
        RayWorkerGroup(pools[0], classes[0], name_prefix="trainer") as trainer,
        RayWorkerGroup(pools[1], classes[1], name_prefix="rollout") as rollout,
    ):
        rollout.passport()
        if way in OTHERS:
            measure_other(way, trainer, rollout, nbytes)
            return
        trainer.only(way)
        measure(way, trainer, rollout, nbytes)
        print(f"digests alone: {max(seconds for seconds, _ in trainer.digests()):.3f} s", file=sys.stderr)
        if way == "TCP":
            rollout.peak()
            giving, given = timed(trainer.give)
            taking, _ = timed(lambda: rollout.take(*given))
            row("by the driver", giving + taking, giving, taking, nbytes, max(rollout.peak()))


if __name__ == "__main__":
    main(*sys.argv[1:])
