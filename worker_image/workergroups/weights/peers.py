"""Weights for a rank that was created alone: from the ranks of its WorkerGroup that are still there.

A rank's record in Ray's control service has the address of what tells how its weights are read: of some kilobytes, and
so not in the record. A thread of the rank sends them, also while a method runs.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from workergroups.announcements import held_weights
from workergroups.announcements.held_weights import Offer
from workergroups.lazy import torch
from workergroups.naming import RankName
from workergroups.processes import named_ranks
from workergroups.ray_private.actors import actor_id
from workergroups.transfers.fetching import Source, UnreadableError, fetch, node
from workergroups.transfers.memory import Span
from workergroups.transfers.tcp_reads import TcpAddress
from workergroups.transfers.transports import Address, Lease

from .parts import Part
from .published import Passport, PublishedWeights

_AT_ONCE = 16
"""Ranks that are read at a time."""
_LARGEST = 256 * 2**20


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
    """Yield what the other ranks of this one's incarnation have of a model, the newest version first.

    It asks more and more of them, and yields all that it knows of a version each time. Nothing if this rank was created
    with all others.
    """
    own = named_ranks.own()
    if own is None or not own.birth:
        return
    of_group = [name for name in named_ranks.existing() if name.incarnation_key == own.incarnation_key]
    peers = sorted((each for each in of_group if each.rank != own.rank), key=partial(_distance, own))
    by_version: dict[int, list[PublishedWeights]] = {}
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        for start in range(0, len(peers), _AT_ONCE):
            for published in threads.map(partial(_told, model, deadline), peers[start : start + _AT_ONCE]):
                if published is not None:
                    by_version.setdefault(published.passport.version, []).append(published)
            yield from (by_version[version] for version in sorted(by_version, reverse=True))


def _distance(own: RankName, peer: RankName) -> int:
    """Spread the ranks that are created at the same time over their peers."""
    return (peer.rank - own.rank) % own.world_size


def _told(model: str, deadline: float, peer: RankName) -> PublishedWeights | None:
    """Return what a rank tells of its weights; ``None`` if it has none, or has just ended."""
    handle = named_ranks.handle(peer)
    offer = None if handle is None else held_weights.offered(actor_id(handle), model)
    if offer is None or not 0 < offer.size <= _LARGEST:
        return None
    address = Address(offer.lease, None, None, TcpAddress(offer.host, offer.port))
    told = torch.empty(offer.size, dtype=torch.uint8)
    try:
        fetch([(Source(str(peer), "", address), [Span(0, 0, told)])], deadline)
    except UnreadableError:
        return None
    published: PublishedWeights = pickle.loads(told.numpy().tobytes())
    return published
