"""Weights for a rank that was created alone: from the ranks of its WorkerGroup that are still there.

A rank's record in Ray's control service has the version, and the address of what tells how the weights are read: of
some kilobytes, and so not in the record. A thread of the rank sends them, also while a method runs.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from typing import TypeVar

import ray

from workergroups.announcements import held_weights
from workergroups.announcements.held_weights import HeldWeights, Offer
from workergroups.errors import WeightsError
from workergroups.lazy import torch
from workergroups.naming import RankName, latest_births
from workergroups.processes import named_ranks
from workergroups.ray_private.actors import actor_id
from workergroups.transfers.fetching import Source, UnreadableError, fetch, node
from workergroups.transfers.memory import Span
from workergroups.transfers.tcp_reads import TcpAddress
from workergroups.transfers.transports import Address, Lease

from .parts import Part
from .published import Passport, PublishedWeights

_AT_ONCE = 16
"""Ranks that are asked at a time."""
_ANSWER_SECONDS = 10.0
"""After this time, the ranks that have not answered are left out: some may be stopped, or their nodes lost."""
_LARGEST = 256 * 2**20
_T = TypeVar("_T")
_R = TypeVar("_R")


class Offered:
    """How to read this rank's weights, which its peers can ask until this is released.

    Args:
        published: The weights.
        lease: What is released with it.

    Attributes:
        offer: Where to ask.
    """

    def __init__(self, published: PublishedWeights, lease: Lease | None = None) -> None:
        self._weights = lease
        described = torch.frombuffer(bytearray(pickle.dumps(published)), dtype=torch.uint8)
        self._description = Lease([described], by_nixl=False)
        address = self._description.address
        self.offer = Offer(address.tcp.host, address.tcp.port, address.lease, len(described))

    @classmethod
    def received(cls, passport: Passport, parts: Mapping[str, Part]) -> Offered:
        """Offer what was received into these parts, but for those that are not contiguous."""
        readable = [shard for shard in passport.shards if parts[shard.name].local.is_contiguous()]
        lease = Lease([parts[shard.name].local for shard in readable], by_nixl=False)
        of_readable = Passport.of(passport.rank, passport.group, passport.version, tuple(readable))
        return cls(PublishedWeights(of_readable, node(), lease.address), lease)

    def release(self) -> None:
        """Let nobody read it."""
        self._description.release()
        if self._weights is not None:
            self._weights.release()


def known_to_peers(model: str, deadline: float) -> Iterator[list[PublishedWeights]]:
    """Yield what the other ranks of this one's incarnation have of a model: the newest version, then earlier ones.

    Of each version, it asks more and more ranks, and yields all that it knows each time. Nothing if this rank was
    created with all others.

    Raises:
        WeightsError: Those that had the newest are receiving others just now, or have ended.
        RayError: The GCS does not answer.
    """
    own = named_ranks.own()
    if own is None or not own.birth:
        return
    of_group = latest_births(rank for rank in named_ranks.existing() if rank.incarnation_key == own.incarnation_key)
    peers = [peer for rank, peer in of_group.items() if rank != own.rank]
    by_version: dict[int, list[tuple[RankName, Offer]]] = {}
    for peer, held in _answers(partial(_record, model), peers, deadline):
        if held is not None and held.offer is not None and 0 < held.offer.size <= _LARGEST:
            by_version.setdefault(held.version, []).append((peer, held.offer))
    for _, offers in sorted(by_version.items(), reverse=True):
        yield from _told(sorted(offers, key=partial(_distance, own)), deadline)


def _told(offers: Sequence[tuple[RankName, Offer]], deadline: float) -> Iterator[list[PublishedWeights]]:
    told: list[PublishedWeights] = []
    for start in range(0, len(offers), _AT_ONCE):
        answers = _answers(partial(_read, deadline), offers[start : start + _AT_ONCE], deadline)
        told += [published for _, published in answers if published is not None]
        if told:
            yield list(told)
    if not told:
        raise WeightsError(f"{', '.join(f'rank {peer.rank}' for peer, _ in offers)}: changing, or not there any more")


def _distance(own: RankName, offer: tuple[RankName, Offer]) -> tuple[bool, int]:
    """Order ranks of this node first, and let ranks that are created at the same time ask different ones."""
    peer, where = offer
    is_far = where.host != ray.util.get_node_ip_address().strip("[]")
    return is_far, (peer.rank - own.rank) % own.world_size


def _answers(ask: Callable[[_T], _R], of: Sequence[_T], deadline: float) -> Iterable[tuple[_T, _R]]:
    """Return what some ranks answer, without those that take too long: their threads end later."""
    threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="workergroups-peers")
    try:
        asked = {threads.submit(ask, each): each for each in of}
        seconds = min(_ANSWER_SECONDS, deadline - time.monotonic())
        # Not `as_completed`: what it raises after that time is another class with Python 3.10.
        answered, _ = wait(asked, timeout=max(0.0, seconds))
        return [(each, answer.result()) for answer, each in asked.items() if answer in answered]
    finally:
        threads.shutdown(wait=False, cancel_futures=True)


def _record(model: str, peer: RankName) -> HeldWeights | None:
    handle = named_ranks.handle(peer)
    return None if handle is None else held_weights.held(actor_id(handle), model)


def _read(deadline: float, offer: tuple[RankName, Offer]) -> PublishedWeights | None:
    """Return how a rank's weights are read; ``None`` if it has others now, or has just ended."""
    peer, where = offer
    address = Address(where.lease, None, None, TcpAddress(where.host, where.port))
    described = torch.empty(where.size, dtype=torch.uint8)
    try:
        fetch([(Source(str(peer), "", address), [Span(0, 0, described)])], deadline)
    except UnreadableError:
        return None
    published: PublishedWeights = pickle.loads(described.numpy().tobytes())
    return published
