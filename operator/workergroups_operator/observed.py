"""What exists around one RayCluster, as frozen values. `observe` fills them; everything else only reads them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from workergroups_api import names
from workergroups_api.conditions import Explanation
from workergroups_api.heads import running_heads
from workergroups_api.manifest import RAY_CLUSTER, Kind, Manifest, annotations_of
from workergroups_api.plan import ClusterPlan, PlannedGroup, PlannedPool
from workergroups_api.resource_pool import ResourcePool
from workergroups_api.vocabulary import Component
from workergroups_api.worker_group import WorkerGroup
from workergroups_operator.membership import ClusterKey

# The variables that a group takes from Secrets and ConfigMaps, or why it cannot.
GroupEnv = Mapping[str, str] | Explanation

# KubeRay's label of the pods of a node group.
NODE_GROUP_LABEL = "ray.io/group"
# So long after a pod's grace period, its node reports that it has ended.
_KILL_SECONDS = 5.0


REMEMBERED = ("release", "idle", "drivers", "roll", "template", "failures")
"""What the operator knows from an object's status only, also if it cannot read the object. A plan has incarnations."""


@dataclass(frozen=True)
class UnreadableObject:
    """A pool or group that the operator cannot read or serve, such as one that was stored before a field changed."""

    kind: Kind
    body: Manifest
    explanation: Explanation

    @property
    def name(self) -> str:
        """The object's name."""
        return str(self.body["metadata"]["name"])

    @property
    def uid(self) -> str:
        """The object's UID."""
        return str(self.body["metadata"].get("uid"))


@dataclass(frozen=True)
class AgentHeartbeat:
    """What the agent's Lease shows of the agent, timed by this process's own clock alone."""

    # The Ray session that the agent says it is connected to.
    session: str | None = None
    # The head and the Ray session that the operator last saw together.
    known: tuple[str, str] | None = None
    # For how many seconds it has not been connected; 0 if it is.
    away_seconds: float = 0.0
    # Its Lease is late, and still was at a second reading.
    is_silent: bool = False
    # The present head is the cluster's first, so that the agent cannot mean another one.
    is_of_first_head: bool = False
    # Seconds from the operator's first sight of the present head to the agent's last sign; None if that came before.
    seen_with_head_seconds: float | None = None
    # When to look again if nothing happens.
    look_again_seconds: float = float("inf")
    # Why the agent does not vouch for an object's status, by UID.
    doubts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Queueing:
    """What Kueue shows of the RayCluster."""

    # Its Workload, which waits in a queue on its behalf; None if there is none.
    workload: Manifest | None = None
    # The Workload's place in its ClusterQueue, from 1; None if it does not wait, or if Kueue does not tell.
    place: int | None = None
    # Why it is unknown whether there is a Workload.
    unreadable: str | None = None


@dataclass(frozen=True)
class Domains:
    """In which domains of its topology the pods of a pool are."""

    # Pod -> domain, "" if it is in none; without pods that have no node yet.
    of_pods: Mapping[str, str] = field(default_factory=dict)
    # Why none is known.
    unreadable: str | None = None


@dataclass(frozen=True)
class Observed:
    """What exists. Pools and groups are in the order of their creation."""

    key: ClusterKey
    # When this was observed.
    at: datetime
    pools: tuple[ResourcePool, ...] = ()
    groups: tuple[WorkerGroup, ...] = ()
    unreadable: tuple[UnreadableObject, ...] = ()
    # Group -> digest of what its spec and code say that ranks are made from; None while its code is not known.
    launch_revisions: Mapping[str, str | None] = field(default_factory=dict)
    # Group -> digest of what its spec alone says that ranks are made from; empty of groups without a method to run.
    run_revisions: Mapping[str, str] = field(default_factory=dict)
    # Group -> the variables that it takes from Secrets and ConfigMaps, or why it cannot; without groups that take none.
    environments: Mapping[str, GroupEnv] = field(default_factory=dict, repr=False)
    # Pool -> cluster, for pools on other clusters that the groups name.
    pools_elsewhere: Mapping[str, str] = field(default_factory=dict)
    # (kind, name) -> the object that has the name of a child, and the head's service.
    children: Mapping[tuple[str, str], Manifest] = field(default_factory=dict)
    # The pods of the present RayCluster and of the agent's Deployment.
    pods: tuple[Manifest, ...] = ()
    # Pods that were evicted a short time ago, and are gone.
    evicted_pods: tuple[Manifest, ...] = ()
    # The pods of an earlier RayCluster, while there is no new one.
    previous_pods: tuple[Manifest, ...] = ()
    # Pods that have the cluster's label and another owner or none: the operator concludes nothing from them.
    foreign_pods: tuple[Manifest, ...] = ()
    plan: ClusterPlan | None = None
    # Pool -> where its pods are; only of pools whose nodes are numbered along a topology.
    domains: Mapping[str, Domains] = field(default_factory=dict)
    agent: AgentHeartbeat = AgentHeartbeat()
    # Whether the namespace enforces the restricted Pod Security Standard.
    restricted: bool = False
    # KubeRay's latest complaint about the cluster, while pods are missing.
    complaint: str | None = None
    queueing: Queueing = Queueing()
    # All pools that groups of the namespace name, as listed just now. None if no pool is about to be deleted.
    named_pools: frozenset[str] | None = None

    def child(self, kind: Kind, name: str) -> Manifest | None:
        """Return the object of that kind and name, if there is one."""
        return self.children.get((kind.kind, name))

    def planned(self, group_uid: str) -> PlannedGroup | None:
        """Return the group's present entry in the plan, if there is one."""
        return self._planned_groups.get(group_uid)

    def planned_pool(self, pool_uid: str) -> PlannedPool | None:
        """Return the pool's present entry in the plan, if there is one."""
        return self._planned_pools.get(pool_uid)

    # Every object asks for some of what follows, so that a search for each would multiply with their number. The first
    # of several entries counts: the plan may have been edited.

    @cached_property
    def _planned_groups(self) -> Mapping[str, PlannedGroup]:
        return {planned.uid: planned for planned in reversed(self.plan.groups if self.plan else ())}

    @cached_property
    def _planned_pools(self) -> Mapping[str, PlannedPool]:
        return {planned.uid: planned for planned in reversed(self.plan.pools if self.plan else ())}

    @cached_property
    def groups_on(self) -> Mapping[str, Sequence[WorkerGroup]]:
        """The groups that name a pool, by its name."""
        found: dict[str, list[WorkerGroup]] = defaultdict(list)
        for group in self.groups:
            for name in {ref.name for ref in group.pools}:
                found[name].append(group)
        return dict(found)

    @cached_property
    def _pods_by_label(self) -> Mapping[tuple[str | None, str | None], list[Manifest]]:
        """All pods, by component and by node group, and by both."""
        found: dict[tuple[str | None, str | None], list[Manifest]] = defaultdict(list)
        for pod in self.pods:
            labels = pod["metadata"]["labels"]
            component, node_group = labels.get(names.COMPONENT_LABEL), labels.get(NODE_GROUP_LABEL)
            for key in {(component, None), (None, node_group), (component, node_group)}:
                found[key].append(pod)
        return dict(found)

    @property
    def ray_cluster(self) -> Manifest | None:
        """The RayCluster, if there is one."""
        return self.child(RAY_CLUSTER, self.key.name)

    @property
    def uses_tls(self) -> bool:
        """Whether Ray uses TLS: as the RayCluster was started; if there is none, as the oldest pool asks."""
        if self.ray_cluster is None:
            return bool(self.pools) and self.pools[0].spec.tls
        return names.TLS_ANNOTATION in annotations_of(self.ray_cluster)

    @property
    def live_head_template(self) -> Any:
        """The template of the head in the RayCluster as it is now, which may be anything; None if there is none."""
        spec = (self.ray_cluster or {}).get("spec", {})
        return (spec.get("headGroupSpec") or {}).get("template")

    def live_node_group(self, name: str) -> Manifest | None:
        """Return the node group of that name in the RayCluster as it is now, if there is one."""
        spec = (self.ray_cluster or {}).get("spec", {})
        return next((group for group in spec.get("workerGroupSpecs") or () if group["groupName"] == name), None)

    def pods_of(self, component: Component, node_group: str | None = None) -> list[Manifest]:
        """Return the pods of a component (of one node group) that are not being deleted."""
        found = self._pods_by_label.get((component, node_group), ())
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    @property
    def leaving_head(self) -> Manifest | None:
        """A pod of the head that is being deleted."""
        heads = self._pods_by_label.get((Component.HEAD, None), ())
        return next((pod for pod in heads if "deletionTimestamp" in pod["metadata"]), None)

    def all_pods_of(self, node_group: str) -> list[Manifest]:
        """Return the pods of a node group, as KubeRay counts them: with those that are being deleted."""
        return self._pods_by_label.get((None, node_group), [])

    @property
    def head(self) -> str | None:
        """The container that runs Ray's head now, and which start of it; None while none runs.

        None also while the head before it still runs: the agent may be connected to that one.
        """
        return None if self.leaving_head_seconds else next(running_heads(self.pods_of(Component.HEAD)), None)

    @property
    def leaving_head_seconds(self) -> float:
        """For how long a head that is being deleted may still run; 0 if it does not run, or its node is lost."""
        old = self.leaving_head
        if old is None or not any(running_heads([old])):
            return 0.0
        ends = datetime.fromisoformat(old["metadata"]["deletionTimestamp"])
        return max((ends - self.at).total_seconds() + _KILL_SECONDS, 0.0)


def unreadable(kind: Kind, subject: ResourcePool | WorkerGroup, why: Explanation) -> UnreadableObject:
    """Return a pool or group as one that the operator cannot serve."""
    status = subject.status.to_json()
    known = {name: status[name] for name in ("conditions", "observedGeneration", *REMEMBERED) if name in status}
    return UnreadableObject(kind, {"metadata": subject.metadata, "status": known}, why)


def node_group_of(pool: ResourcePool) -> str:
    """Return the name of the pool's node group, which KubeRay calls a worker group, in the RayCluster."""
    return names.node_group(pool.name, pool.uid)


def entries(template: Any, field: str) -> list[Mapping[str, Any]]:
    """Return the entries of a list in a pod template's spec, such as its containers. A template may be anything."""
    spec = template.get("spec") if isinstance(template, Mapping) else None
    found = spec.get(field) if isinstance(spec, Mapping) else None
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []


def has_ended(pod: Manifest) -> bool:
    """Return whether the pod's containers have ended, and will not start again."""
    return pod.get("status", {}).get("phase", "Pending") not in ("Pending", "Running")


def is_running(pod: Manifest) -> bool:
    """Return whether the pod runs, and nothing is about to evict or delete it."""
    status: dict[str, Any] = pod.get("status", {})
    is_doomed = disruption(pod) is not None or "deletionTimestamp" in pod["metadata"]
    return status.get("phase") == "Running" and not is_doomed


@dataclass(frozen=True)
class Disruption:
    """That Kubernetes evicts a pod."""

    why: str
    since: datetime | None


def disruption(pod: Manifest) -> Disruption | None:
    """Return why and since when Kubernetes evicts the pod; None if it does not."""
    for condition in pod.get("status", {}).get("conditions") or ():
        if condition["type"] == "DisruptionTarget" and condition["status"] == "True":
            why = condition.get("message") or condition.get("reason") or "for an unknown reason"
            since = condition.get("lastTransitionTime")
            return Disruption(str(why), datetime.fromisoformat(since) if since else None)
    return None


def deleted_at(pod: Manifest) -> datetime:
    """Return when somebody deleted a pod that is being deleted: its timestamp says when its grace period ends."""
    grace = timedelta(seconds=pod["metadata"].get("deletionGracePeriodSeconds") or 0)
    return datetime.fromisoformat(pod["metadata"]["deletionTimestamp"]) - grace


def runs_something(pod: Manifest) -> bool:
    """Return whether one of the pod's containers runs now."""
    containers = pod.get("status", {}).get("containerStatuses") or ()
    return any("running" in container.get("state", {}) for container in containers)
