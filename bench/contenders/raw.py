"""Raw Ray: actors in a placement group; the driver puts numpy arrays, gets the ranks' arrays, and joins nothing."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import ray
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from . import COLUMNS, ROW_ELEMENTS, rows_of


class Rank:
    """One actor."""

    def __init__(self, modules: Sequence[str], tensor_parallel: int) -> None:
        for module in modules:
            importlib.import_module(module)

    def noop(self) -> None:
        """Do nothing."""

    def echo(self, arrays: dict[str, Any]) -> dict[str, Any]:
        """Return the array, which is mapped and not copied."""
        return arrays

    def add_one(self, arrays: dict[str, Any]) -> dict[str, Any]:
        """Return a copy of the array plus one, since arrays from the object store are read-only."""
        return {key: array + 1 for key, array in arrays.items()}

    def read(self, arrays: dict[str, Any]) -> float:
        """Return one element."""
        return float(arrays["a"][0, 0])


class Driver:
    """Actors that are called one by one."""

    def create(self, ranks: int, modules: Sequence[str], tensor_parallel: int) -> None:
        """See `Contender`."""
        self._tensor_parallel = tensor_parallel
        self._placement_group = placement_group([{"CPU": 1}] * ranks, strategy="STRICT_PACK")
        ray.get(self._placement_group.ready())
        actor_class = ray.remote(Rank)
        self._ranks = [
            actor_class.options(
                num_cpus=1, scheduling_strategy=PlacementGroupSchedulingStrategy(self._placement_group, index)
            ).remote(modules, tensor_parallel)
            for index in range(ranks)
        ]
        self.noop()

    def close(self) -> None:
        """See `Contender`."""
        for rank in self._ranks:
            ray.kill(rank)
        remove_placement_group(self._placement_group)

    def prepare(self, payload_bytes: int) -> None:
        """See `Contender`."""
        self._batch = {key: np.ones((rows_of(payload_bytes), ROW_ELEMENTS), dtype=np.float32) for key in COLUMNS}

    def noop(self) -> None:
        """See `Contender`."""
        ray.get([rank.noop.remote() for rank in self._ranks])

    def echo(self) -> float:
        """See `Contender`."""
        chunks = self._chunks(len(self._ranks))
        return _first(ray.get([rank.echo.remote(ray.put(c)) for rank, c in zip(self._ranks, chunks, strict=True)]))

    def add_one(self) -> float:
        """See `Contender`."""
        chunks = self._chunks(len(self._ranks))
        return _first(ray.get([rank.add_one.remote(ray.put(c)) for rank, c in zip(self._ranks, chunks, strict=True)]))

    def share_by_mesh(self) -> None:
        """See `Contender`."""
        refs = [ray.put(chunk) for chunk in self._chunks(len(self._ranks) // self._tensor_parallel)]
        ray.get([rank.read.remote(refs[index // self._tensor_parallel]) for index, rank in enumerate(self._ranks)])

    def _chunks(self, count: int) -> list[dict[str, Any]]:
        split = {key: np.split(array, count) for key, array in self._batch.items()}
        return [{key: parts[index] for key, parts in split.items()} for index in range(count)]


def _first(results: list[dict[str, Any]]) -> float:
    return float(results[0]["a"][0, 0])
