"""Report which ranks have not returned from a call, for how long, and where they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ray.actor import ActorHandle

from workergroups.errors import LateCallError
from workergroups.node_tasks import run_on_nodes
from workergroups.processes import stack_dump
from workergroups.ray_private.actors import actor_id
from workergroups.ray_private.cluster_state import ActorState, actor_state, live_nodes
from workergroups.waiting import not_ready

_STACKS_TIMEOUT = 15.0


def late_call(method_name: str, refs: Sequence[Any], workers: Sequence[ActorHandle], seconds: float) -> LateCallError:
    """Return the error for a call that did not return on all ranks in time.

    Args:
        method_name: The method that was called.
        refs: Its references, in rank order; one alone is rank 0's.
        workers: The group's ranks.
        seconds: How long ago the call was made.
    """
    pending = set(not_ready(refs))
    late = [rank for rank, ref in enumerate(refs) if ref in pending]
    found = stacks({rank: workers[rank] for rank in late})
    where = "\n".join(f"{stack}\n" for stack in found.values())
    message = (
        f"{method_name!r} has not returned after {seconds:.1f} s on {len(late)} of {len(refs)} ranks "
        f"({', '.join(map(str, late))}), which continue with it:\n{where}"
    )
    return LateCallError(message, method_name, late, seconds, found)


def stacks(workers: Mapping[int, ActorHandle]) -> dict[int, str]:
    """Return what each rank is doing: process, node and the Python stacks of its threads, or why there are none."""
    ids = {rank: actor_id(worker) for rank, worker in workers.items()}
    states = {rank: actor_state(actor_id) for rank, actor_id in ids.items()}
    running = {rank: state for rank, state in states.items() if state is not None and state.state != "DEAD"}
    asked = [ids[rank] for rank in running]
    nodes = _nodes_of(running.values()) if running else ()
    # All nodes share one time-out.
    answers = run_on_nodes(stack_dump.dump, nodes, asked, timeout=_STACKS_TIMEOUT)
    dumps = {actor_id: stack for answer in answers for actor_id, stack in answer.items()}
    return {rank: _describe(rank, states[rank], dumps.get(ids[rank])) for rank in workers}


def _nodes_of(states: Any) -> set[str]:
    """Return the nodes that these actors may be on. Ray knows an actor's node once its constructor has returned."""
    if all(state.node_id and state.state == "ALIVE" for state in states):
        return {state.node_id for state in states}
    return {node.node_id for node in live_nodes()}


def _describe(rank: int, state: ActorState | None, stack: str | None) -> str:
    if state is None:
        return f"rank {rank}: Ray does not know its actor"
    if state.death is not None:
        return f"rank {rank}: dead: {state.death.details or state.death.message}"
    if state.state != "ALIVE":
        if stack is not None:
            return f"rank {rank}, in its constructor:\n{stack}"
        return (
            f"rank {rank}: {state.state}: its process has not been started; a bundle's device has room for "
            "max_colocate_count ranks, of this group and others"
        )
    return (
        f"rank {rank} (pid {state.pid} on node {state.node_address}):\n{stack or 'no stacks: its node did not answer'}"
    )
