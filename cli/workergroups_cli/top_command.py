"""top: what ranks spend their time on, and how busy the devices are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from workergroups.processes.tables import ACTIVITIES, DeviceRow
from workergroups_client import Cluster
from workergroups_client.objects.names import GROUP, find
from workergroups_client.pods.usage import REPORT_SECONDS, RankUsage, usage
from workergroups_client.times import duration

from .json_output import print_list, with_api_names
from .options import Context, Format, Name, Namespace, seconds_of
from .output import Output, Teller, note, print_text, table

_SHORTEST_SECONDS = 2 * REPORT_SECONDS
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
    _table_of_ranks(found.ranks)
    if found.devices:
        print_text("")
        _table_of_devices(found.devices)
    for trouble in found.troubles:
        note(trouble)
    if not found.ranks:
        note(f"{target} has no ranks" if target.what == GROUP else f"no group has ranks on the Ray cluster of {target}")
    if silent := [f"{each.group} {each.ranks}" for each in found.ranks if not each.seconds]:
        note(
            f"not counted: {', '.join(silent)}. Ranks report every ten seconds, and those whose methods are coroutines "
            "never do"
        )


def _table_of_ranks(ranks: Sequence[RankUsage]) -> None:
    columns = [activity.upper() for activity in ACTIVITIES]
    rows = [
        (
            each.group,
            each.ranks,
            duration(each.seconds) if each.seconds else None,
            *(_percent(each.activities[activity]) if each.seconds else None for activity in ACTIVITIES),
            ", ".join(f"{method} {_percent(share)}" for method, share in list(each.methods.items())[:_METHODS]),
        )
        for each in ranks
    ]
    table("GROUP", "RANKS", "COUNTED", *columns, "METHODS", rows=rows)


def _table_of_devices(devices: Sequence[DeviceRow]) -> None:
    rows = [
        (
            each.pod,
            each.number,
            each.product,
            None if each.utilization is None else _percent(each.utilization),
            _memory(each),
        )
        for each in devices
    ]
    table("POD", "DEVICE", "PRODUCT", "UTILISATION", "MEMORY", rows=rows)


def _memory(device: DeviceRow) -> str | None:
    if device.used_bytes is None or device.total_bytes is None:
        return None
    return f"{device.used_bytes / _GIB:.1f} of {device.total_bytes / _GIB:.0f} GiB"


def _percent(share: float) -> str:
    return f"{share:.0%}"
