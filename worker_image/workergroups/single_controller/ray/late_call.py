"""Saying which ranks have not returned from a call, for how long, and where they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ray
from ray.actor import ActorHandle
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from workergroups.errors import LateCallError

from . import stack_dump
from .cluster_state import ActorState, actor_state

_STACKS_TIMEOUT = 15.0


def late_call(method_name: str, refs: Sequence[Any], workers: Sequence[ActorHandle], seconds: float) -> LateCallError:
    """The error for a call that did not return on all ranks in time.

    Args:
        method_name: The method that was called.
        refs: Its references, in rank order; one alone is rank 0's.
        workers: The group's ranks.
        seconds: How long ago the call was made.
    """
    _, pending = ray.wait(list(refs), num_returns=len(refs), timeout=0)
    late = [rank for rank, ref in enumerate(refs) if ref in set(pending)]
    found = stacks({rank: workers[rank] for rank in late})
    where = "\n".join(f"{stack}\n" for stack in found.values())
    message = (
        f"{method_name!r} has not returned after {seconds:.1f} s on {len(late)} of {len(refs)} ranks "
        f"({', '.join(map(str, late))}), which go on with it:\n{where}"
    )
    return LateCallError(message, method_name, late, seconds, found)


def stacks(workers: Mapping[int, ActorHandle]) -> dict[int, str]:
    """What each rank is doing: its process and node, and the Python stacks of its threads, or why there are none."""
    states = {rank: actor_state(worker._actor_id.hex()) for rank, worker in workers.items()}
    dumps = {
        rank: _dump_on_node(state)
        for rank, state in states.items()
        if state is not None and state.state == "ALIVE" and state.pid
    }
    if dumps:  # one wait for all: nodes that do not answer share the time
        ray.wait(list(dumps.values()), num_returns=len(dumps), timeout=_STACKS_TIMEOUT)
    return {rank: _describe(rank, state, dumps.get(rank)) for rank, state in states.items()}


_dump: Any = ray.remote(num_cpus=0, max_retries=0)(stack_dump.dump)


def _dump_on_node(state: ActorState) -> Any:
    on_node = NodeAffinitySchedulingStrategy(state.node_id, soft=False)
    return _dump.options(scheduling_strategy=on_node).remote(state.pid)


def _describe(rank: int, state: ActorState | None, stack: Any) -> str:
    if state is None:
        return f"rank {rank}: Ray does not know its actor"
    if stack is None:
        if state.state == "DEAD":
            return f"rank {rank}: dead: {state.death_cause}"
        return (
            f"rank {rank}: {state.state}: its constructor has not returned, or its process was not started; a bundle "
            "has room for max_colocate_count ranks"
        )
    head = f"rank {rank} (pid {state.pid} on node {state.node_address})"
    try:
        return f"{head}:\n{ray.get(stack, timeout=0)}"
    except (RayError, LookupError) as error:
        return f"{head}: no stack: {str(error).strip().splitlines()[-1]}"
