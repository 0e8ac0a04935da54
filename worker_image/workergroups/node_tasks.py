"""Tasks that run on given nodes, for questions that only a process there can answer."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

T = TypeVar("T")


def run_on_nodes(function: Callable[..., T], nodes: Iterable[str], *args: Any, timeout: float) -> list[T]:
    """Run the function on each of these nodes; return what those return that do so within ``timeout`` seconds."""
    task = _task(function)
    refs = [
        task.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False)).remote(*args)
        for node in nodes
    ]
    if not refs:
        return []
    answered, _ = ray.wait(refs, num_returns=len(refs), timeout=timeout)
    answers = []
    for ref in answered:
        try:
            answers.append(ray.get(ref))
        except RayError:  # the node went away
            continue
    return answers


@functools.cache
def _task(function: Callable[..., Any]) -> Any:
    """Return the function as a task. It is cached, since Ray ships each remote function to the cluster once."""
    return ray.remote(num_cpus=0, max_retries=0)(function)
