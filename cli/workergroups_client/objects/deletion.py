"""Delete pools and groups, and wait until they are gone."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from workergroups_api.manifest import CONFIG_MAP, POD
from workergroups_api.names import CLUSTER_LABEL
from workergroups_api.references import code_of_group

from ..api_server.cluster import Cluster
from ..errors import ClientError, ConflictError, DeadlineError, UnreachableError
from ..times import duration
from ..waiting import Tell, look_again
from . import names
from .names import GROUP, POOL, Target

GONE_SECONDS = 180


def groups_on(cluster: Cluster, pool: Target) -> list[Target]:
    """Return the groups on a pool, whose ranks end with it."""
    return [group for group in names.list_all(cluster, GROUP) if pool.name in names.pools_of(group)]


def delete(cluster: Cluster, targets: Sequence[Target], tell: Tell) -> None:
    """Delete pools and groups; return when they are gone, with the pods of Ray clusters that no other pool uses.

    Raises:
        DeadlineError: Some of them still exist when the time is up.
    """
    abandoned = _abandoned(cluster, targets)
    # Groups first, so that the end of a pool fails no group.
    for target in sorted(targets, key=lambda target: target.what != GROUP):
        with suppress(ConflictError):  # it was deleted, and created again
            cluster.delete(target.kind, target.manifest)
    left = [str(target) for target in targets]
    for seconds in look_again(GONE_SECONDS, pause=1):
        try:
            left = _left(cluster, targets, abandoned)
        except UnreachableError as error:
            tell(f"trying again for {duration(seconds)}: {error}")
            continue
        if not left:
            return
        tell(f"waiting for the deletion of {', '.join(left)} ({duration(seconds)} left)")
    raise DeadlineError(f"not deleted within {duration(GONE_SECONDS)}: {', '.join(left)}; kubectl describe says why")


def code_left(cluster: Cluster, targets: Sequence[Target]) -> list[str]:
    """Return the ConfigMaps with the code of deleted groups: people have made them, so they stay."""
    named = {code_of_group(target.manifest["spec"]) for target in targets if target.what == GROUP}
    try:
        return sorted(name for name in named if name is not None and cluster.get(CONFIG_MAP, name) is not None)
    except ClientError:  # the deletion is done: without the right to read them, only this hint is missing
        return []


def _abandoned(cluster: Cluster, targets: Sequence[Target]) -> set[str]:
    """Return the Ray clusters that lose all of their pools."""
    going = {target.name for target in targets if target.what == POOL}
    pools = names.list_all(cluster, POOL)
    staying = {names.ray_cluster(cluster, pool) for pool in pools if pool.name not in going}
    return {names.ray_cluster(cluster, pool) for pool in pools if pool.name in going} - staying


def _left(cluster: Cluster, targets: Sequence[Target], abandoned: set[str]) -> list[str]:
    there = [str(target) for target in targets if _is_there(cluster, target)]
    pods = [pod for name in sorted(abandoned) for pod in cluster.select(POD, f"{CLUSTER_LABEL}={name}")]
    return there + [f"pod {pod['metadata']['name']}" for pod in pods]


def _is_there(cluster: Cluster, target: Target) -> bool:
    """Return whether the object still exists, and is not a newer one of the same name."""
    found = cluster.get(target.kind, target.name)
    return found is not None and found["metadata"]["uid"] == target.uid
