"""Tasks and actors on given nodes, for what only a process there can answer or do."""

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
    refs = [start_on_node(function, node, *args) for node in nodes]
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


def start_on_node(function: Callable[..., Any], node: str, *args: Any) -> Any:
    """Start the function on that node, on none of its resources; return the reference of its result."""
    strategy = NodeAffinitySchedulingStrategy(node, soft=False)
    return _remote(function).options(scheduling_strategy=strategy, max_retries=0).remote(*args)


def on_node(node: str, **options: Any) -> Callable[[type], Any]:
    """Return the decorator for the class of an actor on that node that takes none of its resources."""
    strategy = NodeAffinitySchedulingStrategy(node, soft=False)
    return lambda actor_class: _remote(actor_class).options(scheduling_strategy=strategy, **options)


@functools.cache
def _remote(function_or_class: Callable[..., Any]) -> Any:
    """Return it as a task or an actor. It is cached: the GCS keeps each remote function as long as this process."""
    return ray.remote(num_cpus=0)(function_or_class)
