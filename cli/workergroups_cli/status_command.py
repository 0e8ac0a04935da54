"""status: pools and groups, their conditions, and what they wait for and until when."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from workergroups_api.manifest import POD, RESOURCE_POOL, WORKER_GROUP
from workergroups_api.names import CLUSTER_LABEL
from workergroups_client import Cluster

from .json_output import described_item, print_list, status_item
from .options import Context, Format, Namespace, complete_name
from .output import Output, note
from .overview import look_at_all


def status(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="A pool, a group, or both of one name; by default all.",
            autocompletion=complete_name,
        ),
    ] = None,
    all_namespaces: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="The pools and groups of all namespaces.")
    ] = False,
    is_watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Show it again when it changes, until Ctrl-C.")
    ] = False,
    ray: Annotated[bool, typer.Option("--ray", help="Also print the output of `ray status`.")] = False,
    output: Format = Output.text,
    namespace: Namespace = None,
    context: Context = None,
) -> None:
    """Show pools and groups: conditions, nodes, ranks and jobs.

    Each condition has its reason and age. A pool also shows its pods, what those that do not run wait for, who holds
    the devices that they wait for, and what runs in its bundles. Without a name, a line for each pool and group says
    what it waits for.
    """
    if ray and name is None:
        raise typer.BadParameter("--ray needs a name: each Ray cluster has its own status")
    if all_namespaces and name is not None:
        raise typer.BadParameter("--all-namespaces shows all pools and groups: leave out NAME, or give its --namespace")
    if is_watch and output is Output.json:
        raise typer.BadParameter("--watch cannot be combined with --output json: in scripts, use workergroups wait")
    cluster = Cluster(namespace, context)
    if is_watch:
        _watch(cluster, name, everywhere=all_namespaces, with_ray=ray)
    elif name is None:
        _overview(cluster, output, everywhere=all_namespaces)
    else:
        _description(cluster, name, output, with_ray=ray)


# Each of these imports what the others do without: a status is also asked for in loops.
def _watch(cluster: Cluster, name: str | None, *, everywhere: bool, with_ray: bool) -> None:
    from workergroups_client.api_server.watching import ObjectChanges, Watched

    from .description import look_at
    from .watch_view import watch

    ours = (Watched(RESOURCE_POOL), Watched(WORKER_GROUP))
    if name is None:
        watch(partial(look_at_all, cluster, everywhere=everywhere), ObjectChanges(cluster, ours, everywhere=everywhere))
    pods = Watched(POD, CLUSTER_LABEL)
    watch(partial(look_at, cluster, name, with_ray=with_ray), ObjectChanges(cluster, (*ours, pods)))


def _overview(cluster: Cluster, output: Output, *, everywhere: bool = False) -> None:
    found = look_at_all(cluster, everywhere=everywhere)
    if output is Output.text:
        found.show()
        return
    print_list("Status", map(status_item, found.statuses))
    found.check()


def _description(cluster: Cluster, name: str, output: Output, *, with_ray: bool) -> None:
    from .description import look_at

    found = look_at(cluster, name, with_ray=with_ray)
    if output is Output.text:
        found.show()
        return
    items = [described_item(status, found.jobs, found.occupants, found.holders, found.ray) for status in found.statuses]
    print_list("Status", items)
    for sentence in found.notes:
        note(sentence)
