"""Probes: a process on each node of a pool that reports what the node has, and to which the others connect."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayError

from workergroups.node_tasks import on_node
from workergroups.ports import bind_any_port
from workergroups.ray_private import records
from workergroups.ray_private.gcs import Gcs
from workergroups.stacks.exception_text import exception_line

from . import node
from .answers import CONNECT_SECONDS, LOOK_SECONDS, NodeAnswer, Question

_CONNECTION_SECONDS = 5.0
_CONNECTIONS_AT_ONCE = 128
_BACKLOG = 1024


@dataclass(frozen=True)
class PoolNode:
    """A live node of the pool."""

    id: str
    name: str
    """The node's pod."""
    address: str


def nodes_of(node_group: str, node_ids: Collection[str] | None = None) -> list[PoolNode]:
    """Return the pool's live nodes, or those of them with these ids, in the order of their pods' names."""
    found = (
        PoolNode(each.id, each.pod, each.address)
        for each in map(records.node, Gcs.of_driver().nodes())
        if each.is_alive and each.node_group == node_group and (node_ids is None or each.id in node_ids)
    )
    return sorted(found, key=lambda each: each.name)


def look_at_all(nodes: Sequence[PoolNode], question: Question) -> tuple[list[NodeAnswer], dict[str, str]]:
    """Return what the nodes report, and why others do not, by name. All probes have ended on return."""
    # They take none of the nodes' resources, since others may hold them all.
    probes = {each: on_node(each.id)(Probe).remote() for each in nodes}
    try:
        looked, silent = _answers(
            {each: probe.look.remote(each.name, question) for each, probe in probes.items()}, LOOK_SECONDS
        )
        addresses = [(each, (each.address, port)) for each, (_, port) in looked.items()]
        unreachable, cut_off = _answers(
            {
                each: probes[each].unreachable.remote([(other.name, at) for other, at in addresses if other != each])
                for each in looked
            },
            CONNECT_SECONDS,
        )
    finally:
        for probe in probes.values():
            ray.kill(probe)
    for each, others in unreachable.items():
        looked[each][0]["unreachable"] = others
    return [looked[each][0] for each in unreachable], {each.name: why for each, why in (silent | cut_off).items()}


class Probe:
    """Runs on a node, and listens there on a port of the kernel's choice, as ranks do."""

    def __init__(self) -> None:
        self._listener = bind_any_port()
        self._listener.listen(_BACKLOG)
        threading.Thread(target=self._accept, daemon=True).start()

    def look(self, name: str, question: Question) -> tuple[NodeAnswer, int]:
        """Return what the node has, and the port on which the probe listens."""
        return node.look(name, question), self._listener.getsockname()[1]

    def unreachable(self, others: Sequence[tuple[str, tuple[str, int]]]) -> dict[str, str]:
        """Return why no connection to a node can be made, by the names of the unreachable nodes."""
        with ThreadPoolExecutor(max_workers=_CONNECTIONS_AT_ONCE) as threads:
            attempts = threads.map(_why_not, [address for _, address in others])
            return {name: why for (name, _), why in zip(others, attempts, strict=True) if why is not None}

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                self._listener.accept()[0].close()


def _why_not(address: tuple[str, int]) -> str | None:
    try:
        socket.create_connection(address, timeout=_CONNECTION_SECONDS).close()
    except OSError as error:
        return error.strerror or str(error)
    return None


def _answers(asked: Mapping[PoolNode, Any], seconds: float) -> tuple[dict[PoolNode, Any], dict[PoolNode, str]]:
    """Return the results by node, and why other nodes have none."""
    if asked:
        ray.wait(list(asked.values()), num_returns=len(asked), timeout=seconds)
    found, missing = {}, {}
    for each, ref in asked.items():
        try:
            found[each] = ray.get(ref, timeout=0)
        except GetTimeoutError:
            missing[each] = f"no answer within {seconds} s"
        except RayError as error:
            missing[each] = exception_line(str(error))
    return found, missing
