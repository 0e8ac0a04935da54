"""scale: change the number of nodes of a pool."""

from __future__ import annotations

from typing import Annotated

import typer

from workergroups_api.vocabulary import Reason
from workergroups_client import ClientError, Cluster
from workergroups_client.objects.deletion import groups_on
from workergroups_client.objects.names import POOL, Target, find, first_pool, pools_of
from workergroups_client.objects.status import status_of

from .options import LONGEST_WAIT, Context, Namespace, PoolName, Timeout, seconds_of
from .output import note, print_text
from .progress import note_old, show_until_ready


def scale(
    pool: PoolName,
    nodes: Annotated[int, typer.Argument(metavar="N", min=1, help="The number of nodes.")],
    timeout: Timeout = LONGEST_WAIT,
    namespace: Namespace = None,
    context: Context = None,
) -> None:
    """Change the size of a pool, and wait until it is ready.

    Ranks that run stay where they are. It names the groups that do not use the new nodes yet, or that hold nodes which
    the pool should give up.
    """
    seconds = seconds_of(timeout)
    cluster = Cluster(namespace, context)
    found = _pool(cluster, pool)
    before = found.manifest["spec"].get("nodes", 1)
    cluster.edit(found.kind, found.name, {"nodes": nodes})
    print_text(f"{found}: {before} -> {nodes} nodes")
    summary = status_of(found).summary
    if found.manifest["spec"].get("suspend") or (summary is not None and summary.reason == Reason.IDLE):
        resume = f"workergroups resume {POOL}/{found.name} {cluster.options}"
        note(f"{found} is suspended, and has its nodes when it is resumed: {resume}")
        return
    show_until_ready(cluster, [found], seconds)
    note_old(status_of(find(cluster, f"{group.what}/{group.name}")) for group in groups_on(cluster, found))


def _pool(cluster: Cluster, name: str) -> Target:
    """Return the pool of the name, or the only one of a group."""
    target = find(cluster, name)
    if target.what == POOL:
        return target
    if len(pools := pools_of(target)) > 1:
        raise ClientError(f"{target} is on {len(pools)} pools: name the one to scale: {', '.join(pools)}")
    return first_pool(cluster, target)
