"""``attach``: get a handle on the ranks of a WorkerGroup, from a driver on its cluster."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass
from functools import partial

import ray
from ray.actor import ActorHandle
from ray.util import placement_group_table

from workergroups.announcements import incarnations
from workergroups.announcements.incarnations import Incarnation
from workergroups.errors import GroupFailedError, GroupNotFoundError, RendezvousTimeoutError
from workergroups.naming import RankName, latest_births
from workergroups.processes import named_ranks, stack_dump
from workergroups.ray_private.actors import actor_id
from workergroups.ray_private.cluster_state import actor_state
from workergroups.single_controller.ray import group_record
from workergroups.single_controller.ray.reserved_bundles import pool_over
from workergroups.single_controller.ray.resource_pool import RayResourcePool
from workergroups.single_controller.ray.worker_group import RayWorkerGroup
from workergroups.waiting import poll

_MAX_ATTACHED = 1000
_attached: dict[tuple[str, int], str] = {}
"""The UID of the WorkerGroup by its name and incarnation, for the latest incarnations that this process attached to.

``newer_than`` is only a number: by the UID, an incarnation of a group that was deleted and recreated counts as newer.
"""


def attach(name: str, *, newer_than: int | None = None, timeout: float = 60.0) -> RayWorkerGroup:
    """Return the WorkerGroup of that name, with the methods that its class registers.

    Connects to the cluster that this process is a driver of, unless it is connected. The class need not be importable
    here. Closing the returned group leaves the ranks alone. Its ``resource_pool`` is a pool over the ranks' bundles:
    use it to find out how many ranks each node has (``store``), or to create groups on the same bundles.

    A WorkerGroup's ranks are replaced when its spec or its code changes, when one of them fails, when it is restarted,
    and when its Ray cluster is restarted. The new ranks are a new incarnation with a higher number, which is the
    returned group's ``incarnation``. Calls of a group whose ranks were replaced raise `IncarnationReplacedError`, and
    its ``renew()`` gives it the new ranks. With ``failurePolicy.restart: Rank``, only a rank that fails is replaced,
    and the incarnation stays.

    Args:
        name: The WorkerGroup's name.
        newer_than: The number of an incarnation: waits for a later one, or for the ranks of a WorkerGroup that was
            recreated under this name.
        timeout: Seconds to wait until all ranks of the current incarnation exist, and rank 0's process is up.

    Raises:
        GroupNotFoundError: They do not exist in time; the message names the ranks or the groups that do.
        GroupFailedError: No later incarnation than ``newer_than`` will exist, by the group's ``failurePolicy``.
        ConnectionError: There is no Ray cluster to connect to.
    """
    if not ray.is_initialized():
        ray.init(address="auto")
    stack_dump.enable_driver()
    return _attach(
        _Wanted(name, newer_than, _attached.get((name, newer_than)) if newer_than is not None else None), timeout
    )


def _attach(wanted: _Wanted, timeout: float) -> RayWorkerGroup:
    deadline = time.monotonic() + timeout
    while True:
        left = max(0.0, deadline - time.monotonic())
        found = poll(wanted.find, timeout=left, describe=partial(_what_is_missing, wanted))
        if found is None:
            raise GroupNotFoundError(_what_is_missing(wanted, timeout))
        try:
            group = _group_of(wanted.group, found, timeout=max(1.0, deadline - time.monotonic()))
        except RendezvousTimeoutError as error:
            # Rank 0 has just ended, perhaps because its incarnation was replaced.
            if time.monotonic() >= deadline:
                raise GroupNotFoundError(
                    f"after {timeout:g} s, group {wanted.group!r} does not answer: {error}"
                ) from error
            continue
        _remember(found[0].name)
        return group


@dataclass(frozen=True)
class _FoundRank:
    name: RankName
    handle: ActorHandle


@dataclass(frozen=True)
class _Wanted:
    """The group whose ranks are wanted, and the incarnation that is not."""

    group: str
    newer_than: int | None
    """The incarnation that is not wanted."""
    uid: str | None
    """The UID of the WorkerGroup that it belonged to, if known: a recreated WorkerGroup counts from 1 again."""
    instead_of: tuple[RankName, ...] = ()
    """Ranks of that incarnation: if some of them were recreated alone, it is wanted after all."""

    def find(self) -> list[_FoundRank] | None:
        """Return the ranks to attach to, in rank order; ``None`` unless all exist.

        Raises:
            GroupFailedError: There will be no other ranks than those that are not wanted.
        """
        current = incarnations.current(self.group)
        candidates = [
            ranks
            for incarnation, ranks in _incarnations(self.group, current).items()
            if current in (incarnation, None) and self.accepts(incarnation, ranks)
        ]
        if not candidates and current is not None and current.is_final and not self.includes(current):
            raise GroupFailedError(_failed_for_good(self.group, current))
        return _handles(max(candidates, key=_age_key)) if candidates else None

    def accepts(self, incarnation: Incarnation, ranks: list[RankName]) -> bool:
        """Return whether these ranks of an incarnation are complete, and wanted."""
        if len(ranks) != ranks[0].world_size:
            return False
        were_recreated = incarnation.uid == self.uid and incarnation.incarnation == self.newer_than
        return self.includes(incarnation) or (
            were_recreated and bool(self.instead_of) and tuple(ranks) != self.instead_of
        )

    def includes(self, incarnation: Incarnation) -> bool:
        """Return whether this incarnation is another than the one that is not wanted."""
        if self.newer_than is None or incarnation.incarnation > self.newer_than:
            return True
        return self.uid is not None and incarnation.uid != self.uid


def _remember(rank: RankName) -> None:
    """Note which WorkerGroup this incarnation belongs to, and forget those that were attached to long ago."""
    key = rank.group, rank.incarnation
    _attached.pop(key, None)  # the latest comes last
    _attached[key] = rank.uid
    while len(_attached) > _MAX_ATTACHED:
        _attached.pop(next(iter(_attached)))


def _group_of(name: str, ranks: list[_FoundRank], *, timeout: float) -> RayWorkerGroup:
    group = RayWorkerGroup.from_detached(
        name_prefix=name,
        worker_names=[str(rank.name) for rank in ranks],
        worker_handles=[rank.handle for rank in ranks],
        ray_wait_register_center_timeout=timeout,
    )
    group.resource_pool = _pool_of(name, ranks[0].handle)
    return group._renewable(partial(_next_ranks, tuple(rank.name for rank in ranks)))


def _next_ranks(ranks: tuple[RankName, ...], timeout: float) -> RayWorkerGroup | None:
    """Wait for ranks instead of these: those of a later incarnation, or of this one if some were recreated alone.

    Return ``None`` if these are current, and alive.
    """
    first = ranks[0]
    own, current = Incarnation(first.uid, first.incarnation), incarnations.current(first.group)
    if current in (own, None) and tuple(_incarnations(first.group, current).get(own, ())) == ranks:
        return None
    return _attach(_Wanted(first.group, first.incarnation, first.uid, ranks), timeout)


def _pool_of(name: str, rank_zero: ActorHandle) -> RayResourcePool | None:
    """Return a pool over the ranks' bundles; ``None`` if some bundles, and so their ranks, are being removed."""
    record = group_record.lookup(actor_id(rank_zero))
    table = placement_group_table()
    places = [(table.get(placement_group), index) for placement_group, index in record.places] if record else []
    known = [(placed, index) for placed, index in places if placed is not None and placed["state"] == "CREATED"]
    return pool_over(name, known) if known and len(known) == len(places) else None


def _handles(ranks: list[RankName]) -> list[_FoundRank] | None:
    """Return the ranks with their handles; ``None`` if one has ended since it was listed."""
    found = [(rank, named_ranks.handle(rank)) for rank in ranks]
    with_handle = [_FoundRank(rank, handle) for rank, handle in found if handle is not None]
    return with_handle if len(with_handle) == len(ranks) else None


def _age_key(ranks: list[RankName]) -> tuple[float, int]:
    """Return what orders incarnations by age: the time first, since a recreated group counts from 1 again."""
    first = named_ranks.handle(ranks[0])
    state = actor_state(actor_id(first)) if first is not None else None
    return state.start_time if state else 0.0, ranks[0].incarnation


def _incarnations(group: str, current: Incarnation | None) -> dict[Incarnation, list[RankName]]:
    """Return the existing ranks of the group by incarnation, in rank order, but for those that are about to end."""
    found = defaultdict(list)
    for rank in named_ranks.existing():
        incarnation = Incarnation(rank.uid, rank.incarnation)
        births = current.births if current is not None and current == incarnation else {}
        if rank.group == group and rank.birth >= births.get(rank.rank, 0):
            found[incarnation].append(rank)
    latest = {incarnation: latest_births(ranks) for incarnation, ranks in found.items()}
    return {incarnation: [ranks[number] for number in sorted(ranks)] for incarnation, ranks in latest.items()}


def _failed_for_good(group: str, current: Incarnation) -> str:
    return (
        f"the ranks of WorkerGroup {group!r} have failed, and its spec.failurePolicy allows no more restarts: "
        f"incarnation {current.incarnation} is the last. See `workergroups status`, correct what failed or run "
        f"`workergroups restart {group}`, and start the driver again"
    )


def _what_is_missing(wanted: _Wanted, seconds: float) -> str:
    current = incarnations.current(wanted.group)
    known = _incarnations(wanted.group, current)
    if current is None and known:
        current = max(known, key=lambda incarnation: incarnation.incarnation)
    if current is None:
        groups = sorted({rank.group for rank in named_ranks.existing()})
        there = ", ".join(map(repr, groups)) if groups else "none"
        return f"there is no group {wanted.group!r} on this cluster after {seconds:g} s; the groups here: {there}"
    ranks = known.get(current, [])
    count = f"{len(ranks)} of {ranks[0].world_size} ranks" if ranks else "no ranks"
    is_there = f"{count} of group {wanted.group!r} are there (incarnation {current.incarnation})"
    if not wanted.includes(current):
        return (
            f"after {seconds:g} s, there is no incarnation newer than {wanted.newer_than} yet: {is_there}; see the "
            "WorkerGroup's conditions for whether its ranks are being replaced"
        )
    return f"after {seconds:g} s, {is_there}; see the WorkerGroup's conditions for what it waits for"
