"""Raw Ray actors that import nothing: what the restart of a group is compared with."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import ray
from ray.util.placement_group import PlacementGroup, placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy


class _Actor:
    def pid(self) -> int:
        return os.getpid()

    def wait(self) -> None:
        time.sleep(3600)


def restart(count: int) -> float:
    """Kill one of these actors and replace all; return the seconds from the kill until the new ones have answered."""
    place = placement_group([{"CPU": 1}] * count)
    actors = _create(count, place)
    pids = ray.get([actor.pid.remote() for actor in actors], timeout=300)
    dying = actors[-1].wait.remote()
    began = time.monotonic()
    os.kill(pids[-1], signal.SIGKILL)
    ray.wait([dying], timeout=60)
    for actor in actors:
        ray.kill(actor)
    actors = _create(count, place)
    ray.get([actor.pid.remote() for actor in actors], timeout=300)
    seconds = time.monotonic() - began
    remove_placement_group(place)
    return seconds


def _create(count: int, place: PlacementGroup) -> list[Any]:
    strategies = (PlacementGroupSchedulingStrategy(place, bundle) for bundle in range(count))
    return [ray.remote(num_cpus=1)(_Actor).options(scheduling_strategy=each).remote() for each in strategies]
