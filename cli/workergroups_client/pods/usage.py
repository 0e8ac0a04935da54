"""What the ranks on a Ray cluster spend their time on, and how busy its devices are."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from workergroups.naming import RankName
from workergroups.processes.tables import ACTIVITIES, DeviceRow, RankSecondsRow, UsageTables
from workergroups_common.ranges import ranges, without

from ..api_server.cluster import Cluster
from ..objects.names import GROUP, Target
from .pod_programs import ask_for_processes, understood
from .pods import head

REPORT_SECONDS = 10.0
"""Ranks report what they count as often as this."""


@dataclass(frozen=True)
class RankUsage:
    """What some ranks of a group spent their time on."""

    group: str
    ranks: str
    """As ranges, such as ``0-2,5``."""
    seconds: float
    """Seconds that were counted, of all of these ranks together."""
    activities: Mapping[str, float]
    """The share of these seconds that went into each activity: Idle, Waiting, Collective and Running."""
    methods: Mapping[str, float]
    """The share that each method took, the largest first."""
    missing: str
    """Those of these ranks that are being created, or have died, as ranges."""
    uncounted: str
    """Those that are alive, and whose seconds are not counted: see ``workergroups top``."""
    stalled: str
    """Those that counted their seconds, and counted none in the time that was measured."""


@dataclass(frozen=True)
class Usage:
    """What the ranks and devices of a Ray cluster are used for."""

    ranks: Sequence[RankUsage]
    devices: Sequence[DeviceRow]
    troubles: Sequence[str]
    """Which pods lack metrics, and why."""


def usage(cluster: Cluster, target: Target, over: float = 0) -> Usage:
    """Return what Ray's node agents report: of a group each rank, of a pool each group on its Ray cluster.

    Args:
        cluster: The cluster of the target.
        target: A pool or a group.
        over: The seconds to measure for; 0 for the time since the ranks started.

    Raises:
        NotFoundError: The head of the Ray cluster is not running.
        ClientError: The program on the head failed.
        DeadlineError: The head did not answer in time.
    """
    found = _ask(cluster, target)
    if over:
        before, asked = found, time.monotonic()
        time.sleep(over)
        found = since(before, _ask(cluster, target), time.monotonic() - asked)
    ranks = of_each_rank(found, target.uid) if target.what == GROUP else of_each_group(found)
    return Usage(ranks, found.devices, found.troubles)


def since(before: UsageTables, now: UsageTables, elapsed: float) -> UsageTables:
    """Return the second of two answers with what was spent between them, and what either of them lacks.

    A rank that only the second answer counts may have begun in between. If it has spent more than the ``elapsed``
    seconds and those of one report, it began earlier, and what it spent in between is not known: it is not counted.
    """
    earlier = {row[:3]: row.seconds for row in before.seconds if row.activity}
    counted = {name for name, *_ in earlier}
    spent: defaultdict[str, float] = defaultdict(float)
    for row in now.seconds:
        spent[row.name] += row.seconds
    unknown = {name for name in spent if name not in counted and spent[name] > elapsed + REPORT_SECONDS}
    rows = (
        RankSecondsRow(row.name, "", "", 0.0)
        if row.name in unknown
        else row._replace(seconds=row.seconds - earlier.get(row[:3], 0.0))
        for row in now.seconds
    )
    return now._replace(seconds=tuple(rows), troubles=tuple(dict.fromkeys((*before.troubles, *now.troubles))))


def of_each_group(tables: UsageTables) -> list[RankUsage]:
    """Return the usage of each group, by name."""
    return [_of(each.group, each.ranks, each.rows, each.missing) for each in _incarnations(tables)]


def of_each_rank(tables: UsageTables, uid: str) -> list[RankUsage]:
    """Return the usage of each rank of one group, and then of all its ranks that are missing together."""
    found = []
    for each in _incarnations(tables):
        if each.uid == uid:
            found += [_of(each.group, str(rank), {rank: each.rows[rank]}) for rank in sorted(each.rows)]
            found += [_of(each.group, each.missing, {}, each.missing)] if each.missing else []
    return found


def of_rows(group: str, rows: Sequence[RankSecondsRow]) -> RankUsage:
    """Return the usage of a group whose ranks are not told apart."""
    return _of(group, "", {0: rows})


@dataclass(frozen=True)
class _Incarnation:
    """The newest incarnation of a group."""

    group: str
    uid: str
    size: int
    rows: dict[int, list[RankSecondsRow]]
    """Those of each rank that is alive."""

    # A name is untrusted: a size that no group can have must not become as many numbers.

    @property
    def ranks(self) -> str:
        return without(f"0-{self.size - 1}", (), self.size)[0]

    @property
    def missing(self) -> str:
        return without(f"0-{self.size - 1}", self.rows, self.size)[0]


def _incarnations(tables: UsageTables) -> list[_Incarnation]:
    found: dict[tuple[str, str], _Incarnation] = {}
    rows = [(row.name, [row]) for row in tables.seconds]
    for text, of_rank in [*rows, *((each, []) for each in tables.being_created)]:
        if name := RankName.parse(text):
            made = found.setdefault((name.group, name.uid), _Incarnation(name.group, name.uid, name.world_size, {}))
            if of_rank:
                made.rows.setdefault(name.rank, []).extend(of_rank)
    return [found[key] for key in sorted(found)]


def _of(group: str, ranks: str, rows: Mapping[int, Sequence[RankSecondsRow]], missing: str = "") -> RankUsage:
    spent = [row for of_rank in rows.values() for row in of_rank if row.seconds > 0]
    total = sum(row.seconds for row in spent)
    activities = dict.fromkeys(ACTIVITIES, 0.0)
    methods: defaultdict[str, float] = defaultdict(float)
    for row in spent:
        activities[row.activity] += row.seconds / total
        methods[row.method] += row.seconds / total
    methods.pop("", None)  # between calls
    longest = dict(sorted(methods.items(), key=lambda each: -each[1]))
    counted = {rank for rank, of_rank in rows.items() if any(row.activity for row in of_rank)}
    stalled = {rank for rank in counted if not any(row.seconds > 0 for row in rows[rank])}
    return RankUsage(group, ranks, total, activities, longest, missing, ranges(rows.keys() - counted), ranges(stalled))


def _ask(cluster: Cluster, target: Target) -> UsageTables:
    return understood(UsageTables.from_json, ask_for_processes(cluster, head(cluster, target), "usage"))
