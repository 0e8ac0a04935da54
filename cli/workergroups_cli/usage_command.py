"""usage: for what pools had devices in the past, and what it cost."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Annotated, Any

import typer

from workergroups_client import Cluster
from workergroups_client.pods.past_usage import PROMETHEUS, PastUsage, PoolUsage, past_usage

from .json_output import print_list
from .options import Context, Format, Namespace, complete_name, seconds_of
from .output import Output, note, print_text, table
from .top_command import COLUMNS, cells, percent

_STATES = ("Starting", "Free", "Launching", "Ready", "Ending", "Unknown")
_HOUR = 3600
_SHORTEST_SECONDS, _LONGEST_SECONDS = 120, 10 * 365 * 24 * _HOUR
_OF_GROUP = ("group", "seconds", "activities", "methods")


def usage(
    pool: Annotated[
        str | None,
        typer.Argument(
            metavar="[POOL]", help="A pool, also a deleted one; by default all.", autocompletion=complete_name
        ),
    ] = None,
    since: Annotated[str, typer.Option(metavar="TIME", help="Look back for this time, such as 1h or 24h.")] = "24h",
    price: Annotated[
        float | None, typer.Option(metavar="PRICE", min=0, help="What a device costs in an hour; adds a column COST.")
    ] = None,
    all_namespaces: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="The pools of all namespaces.")
    ] = False,
    prometheus: Annotated[
        str, typer.Option(metavar="SERVICE", help="The Prometheus that scrapes them, as NAMESPACE/SERVICE:PORT.")
    ] = PROMETHEUS,
    output: Format = Output.text,
    namespace: Namespace = None,
    context: Context = None,
) -> None:
    """Show for what pools had devices in the past, and what it cost.

    Of each pool it shows the hours of its devices, and how they were divided; of each group on these pools, how its
    ranks divided their time. Prometheus has counted this, also of what has been deleted since. You need the right to
    reach its Service through the API server (services/proxy).
    """
    seconds = seconds_of(since, "--since")
    if not _SHORTEST_SECONDS <= seconds <= _LONGEST_SECONDS:
        raise typer.BadParameter(f"{since} is too short or too long: choose 2m to 87600h", param_hint="--since")
    if price is not None and not math.isfinite(price):
        raise typer.BadParameter(f"{price} is no price", param_hint="--price")
    cluster = Cluster(namespace, context)
    found = past_usage(cluster, seconds, pool, everywhere=all_namespaces, prometheus=prometheus)
    if output is Output.json:
        pools = [{**_plain(each, "namespace", "pool", "states", "held"), **_cost(each, price)} for each in found.pools]
        groups = [{"namespace": of, **_plain(each, *_OF_GROUP)} for of, each in found.groups]
        print_list("PastUsage", pools, groups=groups, troubles=found.troubles)
        return
    _tables(found, price, everywhere=all_namespaces)
    for trouble in found.troubles:
        note(trouble)
    if not found.pools and not found.groups:
        what = f"pool {pool}" if pool else "any pool"
        note(f"Prometheus has counted nothing of {what} in the last {since}: does it scrape the operator and the pods?")


def _tables(found: PastUsage, price: float | None, *, everywhere: bool) -> None:
    place = ("NAMESPACE",) * everywhere
    if found.pools:
        columns = ("POOL", "DEVICE HOURS", *(state.upper() for state in _STATES), *("COST",) * (price is not None))
        rows = [
            ((each.namespace,) * everywhere + (*_cells(each), *(f"{cost:.2f}" for cost in _cost(each, price).values())))
            for each in found.pools
        ]
        table(*place, *columns, rows=rows)
    if found.pools and found.groups:
        print_text("")
    if found.groups:
        rows = [((of,) * everywhere + (each.group, *cells(each))) for of, each in found.groups]
        table(*place, "GROUP", *COLUMNS, rows=rows)


def _cells(usage: PoolUsage) -> Iterable[str | None]:
    yield usage.pool
    yield f"{usage.held / _HOUR:.1f}"
    yield from (percent(usage.states.get(state, 0.0) / usage.held) if usage.held else None for state in _STATES)


def _cost(usage: PoolUsage, price: float | None) -> dict[str, float]:
    return {} if price is None else {"cost": round(usage.held / _HOUR * price, 2)}


def _plain(value: object, *fields: str) -> dict[str, Any]:
    return {field: getattr(value, field) for field in fields}
