"""Which pods KubeRay deletes when a pool shrinks: only those that hold nothing, each of them by name.

KubeRay deletes what `scaleStrategy.workersToDelete` names, and then any pods beyond `replicas`. It counts a pod until
the pod is gone. So `replicas` is lowered by as many pods as are named, and they are named until they are gone.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from workergroups_api.manifest import Manifest, name_of
from workergroups_api.report import PoolReport
from workergroups_api.resource_pool import ResourcePool
from workergroups_operator.observed import Observed, node_group_of, runs_something
from workergroups_operator.policy.pool_size import PoolSize, reserved_pods

# How many pods leave at once, so that their names cannot make the RayCluster large.
MAX_LEAVING = 64


@dataclass(frozen=True)
class Replicas:
    """What the RayCluster says about the number of a pool's pods."""

    count: int
    # The pods that KubeRay must delete so that there are no more.
    leaving: tuple[str, ...] = ()


def replicas(pool: ResourcePool, size: PoolSize, report: PoolReport, observed: Observed) -> Replicas:
    """Return how many pods the pool should have now, given the size that it has in the plan."""
    name = node_group_of(pool)
    live = observed.live_node_group(name) or {}
    pods = observed.all_pods_of(name)
    # If another writer has raised it, that counts only for the pods that KubeRay has created since.
    present = min(int(live.get("replicas") or 0), max(pool.status.nodes or 0, len(pods)))
    surplus = len(pods) - size.nodes
    if present <= size.nodes:
        return Replicas(size.nodes, _named(live, pods) if surplus > 0 else ())
    # While pods are missing, KubeRay may be creating one that cannot be named yet.
    leaving = _leaving(pool, size, report, observed, pods)[: min(surplus, MAX_LEAVING)] if len(pods) >= present else []
    return Replicas(len(pods) - len(leaving), tuple(leaving)) if leaving else Replicas(present)


def _named(live: Manifest, pods: Collection[Manifest]) -> tuple[str, ...]:
    """Return the pods that the RayCluster names already, and that still exist."""
    named = (live.get("scaleStrategy") or {}).get("workersToDelete") or ()
    existing = {pod["metadata"]["name"] for pod in pods}
    return tuple(str(each) for each in named if each in existing)


def _leaving(
    pool: ResourcePool, size: PoolSize, report: PoolReport, observed: Observed, pods: Collection[Manifest]
) -> list[str]:
    """Return the pods that hold nothing; first those that are being deleted, then those in which nothing runs."""
    by_name = {name_of(pod): pod for pod in pods}
    deleted = [name for name, pod in by_name.items() if "deletionTimestamp" in pod["metadata"]]
    idle = [name for name, pod in by_name.items() if not runs_something(pod)]
    free = _free_pods(pool, size, report, observed, by_name)
    return list(dict.fromkeys([*sorted(deleted), *sorted(idle), *sorted(free)]))


def _free_pods(
    pool: ResourcePool, size: PoolSize, report: PoolReport, observed: Observed, names: Iterable[str]
) -> set[str]:
    """Return the pods without bundles, once the agent reports that the bundles of the leaving nodes are released.

    A report on another plan says nothing: bundles may have been reserved since.
    """
    if report.generation != pool.generation or report.planned_nodes != size.nodes:
        return set()
    if not pool.is_reserved:
        return set(names)
    kept = reserved_pods(pool, report, observed)
    is_settled = kept.keys() == set(range(size.nodes)) and not report.leaving
    return set(names).difference(kept.values()) if is_settled else set()
