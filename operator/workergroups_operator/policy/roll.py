"""How a pool's nodes are rolled: when a roll begins, which pod is replaced next, and when the roll is over.

Nothing of it is only in memory. The name of the last roll is in the RayCluster's template of the nodes and in the
pool's status. Each pod has the name of the last roll before its creation, so a pod with another name is still to be
replaced.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from workergroups_api.manifest import Manifest, annotations_of, name_of
from workergroups_api.names import ROLL_ANNOTATION, TEMPLATE_ANNOTATION
from workergroups_api.report import PoolReport, pods_digest
from workergroups_api.resource_pool import ResourcePool
from workergroups_api.roll_names import SEPARATOR
from workergroups_api.vocabulary import Restart, UpdateStrategyType
from workergroups_api.worker_group import WorkerGroup
from workergroups_operator.observed import is_running


@dataclass(frozen=True)
class Roll:
    """A roll that is not over: some pods are older than it, or the head is."""

    total: int
    # The pods that were created since it began.
    new: tuple[Manifest, ...] = ()
    # The pods to delete now.
    next: tuple[str, ...] = ()


def automatic_roll(pool: ResourcePool, last: str | None, template: str, groups: Iterable[WorkerGroup]) -> str | None:
    """Return the name of the roll to templates of this digest that RollingUpdate begins now; None if it begins none."""
    if pool.spec.update_strategy.type is not UpdateStrategyType.ROLLING_UPDATE:
        return None
    if any(has_live_ranks(group) for group in groups):
        return None
    return following_roll(last, template)


def following_roll(last: str | None, template: str) -> str:
    """Return the name of a roll to templates of this digest.

    It repeats the last restart that a user asked for, so that this restart does not begin again.
    """
    asked = "" if last is None else last.partition(SEPARATOR)[0]
    return f"{asked}{SEPARATOR}{template}"


def is_stuck(pods: Sequence[Manifest], heads: Sequence[Manifest], last: str | None) -> bool:
    """Return whether the last roll is not over, and none of the nodes that it has created, or no head, has ever run.

    Then a user who corrects the spec need not ask for another restart.
    """
    if last is None or not any(_is_older(pod, last) for pod in pods):
        return False
    new = [pod for pod in pods if not _is_older(pod, last)]
    return any(made and not any(map(has_begun, made)) for made in (new, heads))


def has_live_ranks(group: WorkerGroup) -> bool:
    """Return whether a roll would interrupt the group: it has ranks, none is dead, and no others are planned.

    If dead ranks are recreated alone, it would interrupt those that live.
    """
    ranks, status = group.status.ranks, group.status
    if ranks is None or not ranks.created:
        return False
    if ranks.failures and (group.spec.failure_policy.restart is not Restart.RANK or not ranks.ready_count):
        return False
    return ranks.incarnation == status.incarnation and ranks.session == status.session


def has_begun(pod: Manifest) -> bool:
    """Return whether one of the pod's containers has ever run."""
    containers = pod.get("status", {}).get("containerStatuses") or ()
    return any(
        not each.get("state", {}).get("waiting") or each.get("lastState") or each.get("restartCount")
        for each in containers
        if each.get("state")
    )


def roll_of(pool: ResourcePool, pods: Sequence[Manifest], name: str | None, report: PoolReport | None) -> Roll | None:
    """Return the pool's roll of that name; None if no pod is older, and none that is serves until it has ended.

    A pod without a template's digest does not count: an admission webhook may have removed its notes, and would remove
    them again.

    Args:
        pool: The pool.
        pods: The pods of the pool's nodes, those that are being deleted included.
        name: The name of the last roll; None if there was none.
        report: What the agent reports of the pool; None while it does not count, or while the head must be replaced.
    """
    if name is None:
        return None
    leaving = [pod for pod in pods if "deletionTimestamp" in pod["metadata"]]
    pods = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
    old = [pod for pod in pods if _is_older(pod, name)]
    if not old:
        # Until its processes end, Ray takes the last old node for one that serves: ranks would end with it.
        serves = any(_is_older(pod, name) and _is_noted_ready(pod) for pod in leaving)
        return None if not serves or _are_all(pods, report) else Roll(pool.spec.nodes, tuple(pods))
    names = set(map(name_of, old))
    new = tuple(pod for pod in pods if name_of(pod) not in names)
    # Pods that have no Kubernetes node hold no devices. If no pod has ever run, there is nothing to keep.
    at_once = [pod for pod in old if "nodeName" not in pod.get("spec", {})] if any(map(has_begun, pods)) else old
    is_settled = report is not None and _is_settled(pool, pods, new, report)
    # A pod that never ran first: it may be what stopped an earlier roll.
    due = at_once or (sorted(old, key=lambda pod: (has_begun(pod), name_of(pod)))[:1] if is_settled else [])
    return Roll(pool.spec.nodes, new, tuple(sorted(map(name_of, due))))


def _is_older(pod: Manifest, name: str) -> bool:
    noted = annotations_of(pod)
    return TEMPLATE_ANNOTATION in noted and noted.get(ROLL_ANNOTATION) != name


def _is_settled(pool: ResourcePool, pods: Sequence[Manifest], new: Sequence[Manifest], report: PoolReport) -> bool:
    """Return whether the nodes that were replaced serve again, so that the devices of another one may be free."""
    if len(pods) < pool.spec.nodes or not all(map(_is_ready, new)):
        return False
    if not new:
        return True
    if len(pods) == report.joined_nodes and _are_all(pods, report):
        return report.reserved_nodes >= pool.spec.nodes or not pool.is_reserved
    # Old pods cannot join a head with another Ray. But if all pods are ready, the agent is about to notice the new one.
    return report.joined_nodes >= len(new) and not all(map(_is_ready, pods))


def _are_all(pods: Sequence[Manifest], report: PoolReport | None) -> bool:
    """Return whether those of these pods that run are all nodes that Ray has of the pool."""
    return report is not None and report.joined_pods == pods_digest(map(name_of, filter(is_running, pods)))


def _is_ready(pod: Manifest) -> bool:
    return is_running(pod) and _is_noted_ready(pod)


def _is_noted_ready(pod: Manifest) -> bool:
    conditions = pod.get("status", {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
