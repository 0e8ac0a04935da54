"""What the ranks on a Ray cluster spend their time on, and how busy its devices are."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from workergroups.naming import RankName
from workergroups.processes.tables import ACTIVITIES, DeviceRow, RankSecondsRow, UsageTables
from workergroups_common.ranges import ranges

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
    """Seconds that were counted, of all of these ranks together. 0 if none are: see ``workergroups top``."""
    activities: Mapping[str, float]
    """The share of these seconds that went into each activity: Idle, Waiting, Collective and Running."""
    methods: Mapping[str, float]
    """The share that each method took, the largest first."""


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
    ranks = of_each_rank(found.seconds, target.uid) if target.what == GROUP else of_each_group(found.seconds)
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


def of_each_group(rows: Iterable[RankSecondsRow]) -> list[RankUsage]:
    """Return the usage of each group, by name."""
    found = defaultdict(list)
    for name, row in _named(rows):
        found[name.group, name.uid].append((name, row))
    return [_of(found[key]) for key in sorted(found)]


def of_each_rank(rows: Iterable[RankSecondsRow], uid: str) -> list[RankUsage]:
    """Return the usage of each rank of one group."""
    found = defaultdict(list)
    for name, row in _named(rows):
        if name.uid == uid:
            found[name.rank].append((name, row))
    return [_of(found[rank]) for rank in sorted(found)]


def _named(rows: Iterable[RankSecondsRow]) -> Iterator[tuple[RankName, RankSecondsRow]]:
    for row in rows:
        if name := RankName.parse(row.name):
            yield name, row


def _of(rows: Sequence[tuple[RankName, RankSecondsRow]]) -> RankUsage:
    total = sum(row.seconds for _, row in rows)
    activities = dict.fromkeys(ACTIVITIES, 0.0)
    methods: defaultdict[str, float] = defaultdict(float)
    for _, row in rows:
        if row.seconds > 0:
            activities[row.activity] += row.seconds / total
            methods[row.method] += row.seconds / total
    methods.pop("", None)  # between calls
    longest = dict(sorted(methods.items(), key=lambda each: -each[1]))
    first, _ = rows[0]
    return RankUsage(first.group, ranges(sorted({name.rank for name, _ in rows})), total, activities, longest)


def _ask(cluster: Cluster, target: Target) -> UsageTables:
    return understood(UsageTables.from_json, ask_for_processes(cluster, head(cluster, target), "usage"))
