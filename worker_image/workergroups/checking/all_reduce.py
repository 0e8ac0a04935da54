"""Measure how fast a pool's processes sum up a tensor together, as training does after each step."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ray.exceptions import RayTaskError
from ray.util.placement_group import PlacementGroup, placement_group

from workergroups.attaching.pools import attach_pool
from workergroups.distributed import init_process_group
from workergroups.errors import LateCallError, PlacementTimeoutError
from workergroups.lazy import torch
from workergroups.single_controller.base import Worker
from workergroups.single_controller.ray import placement
from workergroups.single_controller.ray.base import RayClassWithInitArgs, RayResourcePool, RayWorkerGroup
from workergroups.single_controller.ray.resource_pool import Bundle
from workergroups.single_controller.ray.visible_devices import own_device_name

from .answers import MEASURE_SECONDS, AllReduce, NodeAnswer, Question
from .probes import PoolNode

_RESERVE_SECONDS = 20
_START_SECONDS = 60
_MEETING_SECONDS = 60
_TAKE_AWAY_SECONDS = 30
_CALL_SECONDS = MEASURE_SECONDS - _RESERVE_SECONDS - _START_SECONDS - _TAKE_AWAY_SECONDS
_ROUNDS = 5
_MEBIBYTES = {"cuda": 256, "cpu": 16}


def measure(
    question: Question, nodes: Sequence[PoolNode], answers: Sequence[NodeAnswer]
) -> tuple[AllReduce | None, str | None]:
    """Return the result, or why there is none. The processes are removed afterwards."""
    without_torch = [answer["node"] for answer in answers if "torch" not in answer["versions"]]
    if len(answers) != len(nodes) or not nodes:
        return None, "not all nodes answer"
    if without_torch:
        return None, f"pod {without_torch[0]} has no torch that can be imported: install torch in the pool's image"
    if len(nodes) * question["processes"] == 1:
        return None, None
    try:
        with _pool(question, nodes) as pool, RayWorkerGroup(pool, RayClassWithInitArgs(Adder)) as group:
            # A process that finds no room in its bundle must not be reported as one that is late for the measurement.
            with group.deadline(_START_SECONDS):
                group.execute_all_sync("start")
            with group.deadline(_CALL_SECONDS):
                measured: list[AllReduce] = group.execute_all_sync("measure")
    except Exception as error:  # torch, NCCL and Ray may raise anything
        return None, _reason(error)
    return max(measured, key=lambda each: each["seconds"]), None


class Adder(Worker):
    """A rank on the pool that measures."""

    def start(self) -> None:
        """Import torch, which takes long."""
        self.device = "cuda" if torch.cuda.is_available() else "cpu"

    def measure(self) -> AllReduce:
        """Meet the other ranks, sum up a tensor, and return how long that takes."""
        init_process_group(timeout=_MEETING_SECONDS)
        total = torch.tensor([float(self.rank)], device=self.device)
        torch.distributed.all_reduce(total)
        if total.item() != sum(range(self.world_size)):
            raise RuntimeError(f"the sum of the ranks 0 to {self.world_size - 1} is wrong: {total.item():g}")
        mebibytes = _MEBIBYTES[self.device]
        seconds = self._seconds(torch.zeros(mebibytes * 2**20 // 4, device=self.device))
        torch.distributed.destroy_process_group()
        sent = 2 * (self.world_size - 1) / self.world_size * mebibytes * 2**20
        return AllReduce(
            backend="nccl" if self.device == "cuda" else "gloo",
            processes=self.world_size,
            mebibytes=mebibytes,
            seconds=seconds,
            bus_bandwidth=sent / seconds / 1e9,
        )

    def _seconds(self, tensor: Any) -> float:
        """Return the seconds of one round, after rounds that have opened the connections."""
        for rounds in (2, _ROUNDS):
            start = time.perf_counter()
            for _ in range(rounds):
                torch.distributed.all_reduce(tensor)
            tensor[0].item()  # waits until the device is done
        return (time.perf_counter() - start) / _ROUNDS


@contextmanager
def _pool(question: Question, nodes: Sequence[PoolNode]) -> Iterator[RayResourcePool]:
    """Return the pool's bundles; if the pool reserves none, reserve some for the duration of the context."""
    if question["is_reserved"]:
        yield attach_pool(question["pool"], timeout=_RESERVE_SECONDS)
        return
    groups: list[PlacementGroup] = []
    try:
        for each in nodes:
            groups.append(_reserve(each, question))
        deadline = time.monotonic() + _RESERVE_SECONDS
        if not all(group.wait(max(0.0, deadline - time.monotonic())) for group in groups):
            raise PlacementTimeoutError(
                f"the pool reserves nothing, and what it has was not free within {_RESERVE_SECONDS} s: a job holds it"
            )
        bundles = [
            Bundle(group, index, question["devices"] or None, own_device_name(question["device"]))
            for group in groups
            for index in range(question["processes"])
        ]
        yield RayResourcePool.over(bundles, question["pool"], use_gpu=question["devices"] > 0, max_colocate_count=1)
    finally:
        placement.remove(groups)


def _reserve(each: PoolNode, question: Question) -> PlacementGroup:
    """Reserve bundles on that node, by the resource that each Ray node has under its own address."""
    devices = {question["device"]: question["devices"]} if question["devices"] else {}
    bundle = {"CPU": 1.0, f"node:{each.address}": 0.001} | devices
    name = question["placement_name"] and f"{question['placement_name']}{each.id}"
    return placement_group([bundle] * question["processes"], strategy="STRICT_PACK", name=name)


def _reason(error: Exception) -> str:
    """Return the error in one line."""
    if isinstance(error, LateCallError):
        where = next((text.splitlines()[0] for text in error.stacks.values() if text), "")
        return f"it has not ended within {error.seconds:.0f} s: {where}"
    if isinstance(error, RayTaskError):
        # NCCL's whole message, since its last line may be only a number of bytes.
        return f"{type(error.cause).__name__}: {' '.join(str(error.cause).split())}"
    return str(error).splitlines()[0] if str(error) else type(error).__name__
