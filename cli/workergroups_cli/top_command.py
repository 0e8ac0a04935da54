"""top: what ranks spend their time on, and how busy the devices are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Annotated

import typer

from workergroups.processes.tables import ACTIVITIES, DeviceRow
from workergroups_client import Cluster
from workergroups_client.objects.names import GROUP, Target, find
from workergroups_client.pods.usage import REPORT_SECONDS, RankUsage, usage
from workergroups_client.rank_ranges import numbers
from workergroups_client.times import duration
from workergroups_common.ranges import ranges

from .json_output import print_list, with_api_names
from .options import Context, Format, Name, Namespace, seconds_of
from .output import Output, Teller, note, print_text, table

_SHORTEST_SECONDS = 2 * REPORT_SECONDS
_WITHOUT_SECONDS = {
    "missing": "missing: {}. They are being created, or have died: workergroups status GROUP says what they wait for",
    "uncounted": "not counted: {}. Ranks report every ten seconds, and those whose methods are coroutines never do. "
    "With --over, a rank that is not new must have reported before",
    "stalled": "counted nothing: {}. They are stopped, or hang in native code: workergroups stacks GROUP --ranks RANKS",
}
"""What to say of the ranks that a field of `RankUsage` names."""
_METHODS = 3
_GIB = 1 << 30


def top(
    name: Name,
    over: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Measure for this time, 20s or more; by default, since the ranks have started."
        ),
    ] = None,
    output: Format = Output.text,
    namespace: Namespace = None,
    context: Context = None,
) -> None:
    """Show what ranks spend time on, and how busy the devices are.

    Of a group it shows each rank, of a pool each group on its Ray cluster, and of both all devices of that cluster.
    """
    seconds = seconds_of(over, "--over") if over is not None else 0.0
    if 0 < seconds < _SHORTEST_SECONDS:
        raise typer.BadParameter("ranks report every ten seconds: choose 20s or more", param_hint="--over")
    cluster = Cluster(namespace, context)
    with Teller() as tell:
        target = find(cluster, name)
        tell(f"measuring {target} for {duration(seconds)}" if seconds else f"asking the nodes of {target}")
        found = usage(cluster, target, seconds)
    if output is Output.json:
        devices = [with_api_names(device._asdict()) for device in found.devices]
        print_list("Usage", found.ranks, devices=devices, troubles=found.troubles)
        return
    table("GROUP", "RANKS", *COLUMNS, rows=[(each.group, each.ranks, *cells(each)) for each in found.ranks])
    if found.devices:
        print_text("")
        _table_of_devices(found.devices)
    for trouble in found.troubles:
        note(trouble)
    if not found.ranks:
        note(_no_ranks(target))
    for field, sentence in _WITHOUT_SECONDS.items():
        if named := _by_group(found.ranks, field):
            note(sentence.format(named))


def _no_ranks(target: Target) -> str:
    if target.what == GROUP:
        return f"{target} has no ranks: workergroups status {target.name} says why"
    return f"no group has ranks on the Ray cluster of {target}: workergroups status says what the groups wait for"


def _by_group(usages: Iterable[RankUsage], field: str) -> str:
    """Return the ranks in a field of several usages, such as ``actor 0-2, critic 5``."""
    found: defaultdict[str, set[int]] = defaultdict(set)
    for each in usages:
        if text := getattr(each, field):
            found[each.group] |= numbers(text)
    return ", ".join(f"{group} {ranges(ranks)}" for group, ranks in found.items())


COLUMNS = ("COUNTED", *(activity.upper() for activity in ACTIVITIES), "METHODS")


def cells(usage: RankUsage) -> Iterable[str | None]:
    """Return what these columns show of some ranks."""
    yield duration(usage.seconds) if usage.seconds else None
    yield from (percent(usage.activities[activity]) if usage.seconds else None for activity in ACTIVITIES)
    yield ", ".join(f"{method} {percent(share)}" for method, share in list(usage.methods.items())[:_METHODS])


def _table_of_devices(devices: Sequence[DeviceRow]) -> None:
    rows = [
        (
            each.pod,
            each.number,
            each.product,
            None if each.utilization is None else percent(each.utilization),
            _memory(each),
        )
        for each in devices
    ]
    table("POD", "DEVICE", "PRODUCT", "UTILISATION", "MEMORY", rows=rows)


def _memory(device: DeviceRow) -> str | None:
    if device.used_bytes is None or device.total_bytes is None:
        return None
    return f"{device.used_bytes / _GIB:.1f} of {device.total_bytes / _GIB:.0f} GiB"


def percent(share: float) -> str:
    """Return a share in whole percent."""
    return f"{share:.0%}"
