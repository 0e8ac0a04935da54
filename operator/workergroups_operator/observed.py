"""What is seen of one RayCluster's world, as frozen values. `observe` fills them; everything else only reads them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from workergroups_api import names
from workergroups_api.conditions import Explanation
from workergroups_api.manifest import RAY_CLUSTER, Kind, Manifest
from workergroups_api.plan import ClusterPlan, PlannedGroup
from workergroups_api.resource_pool import ResourcePool
from workergroups_api.vocabulary import Component, Container
from workergroups_api.worker_group import WorkerGroup
from workergroups_operator.membership import ClusterKey


@dataclass(frozen=True)
class UnreadableObject:
    """An object of ours that the API types cannot read, such as one that was stored before a field changed."""

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
class AgentSign:
    """What the agent's Lease shows of it, timed by this process's own clock alone."""

    # The Ray session that the agent says it is connected to.
    session: str | None = None
    # The head and the session that were last seen to belong together.
    known: tuple[str, str] | None = None
    # Seconds without a sign that it is connected; 0 if there is one.
    away_seconds: float = 0.0
    # It was given time to show itself, and did not.
    is_silent: bool = False
    # There has been no other head of which the agent could speak.
    is_of_first_head: bool = False
    # Seconds from when the present head was first seen to the agent's last sign; None if that came before.
    seen_with_head_seconds: float | None = None
    # When to look again if nothing happens.
    look_again_seconds: float = float("inf")
    # Why the agent does not vouch for an object's status, by UID.
    doubts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Observed:
    """What is there. Pools and groups stand in the order of their creation."""

    key: ClusterKey
    # When this was observed.
    at: datetime
    pools: tuple[ResourcePool, ...] = ()
    groups: tuple[WorkerGroup, ...] = ()
    unreadable: tuple[UnreadableObject, ...] = ()
    # Digest of what a group's ranks are made from, as written down; None while its code is not known.
    written: Mapping[str, str | None] = field(default_factory=dict)
    # Pool -> cluster, for the pools that the groups name and that are on another cluster.
    pools_elsewhere: Mapping[str, str] = field(default_factory=dict)
    # (kind, name) -> what exists under the names of what the operator makes, and the head's service.
    children: Mapping[tuple[str, str], Manifest] = field(default_factory=dict)
    # Those of the present RayCluster and of the agent's Deployment.
    pods: tuple[Manifest, ...] = ()
    # Those of an earlier RayCluster, while there is no new one.
    previous_pods: tuple[Manifest, ...] = ()
    # Those that have the cluster's label and another owner or none: nothing is concluded from them.
    foreign_pods: tuple[Manifest, ...] = ()
    plan: ClusterPlan | None = None
    agent: AgentSign = AgentSign()
    # KubeRay's latest complaint about the cluster, while pods are missing.
    complaint: str | None = None

    def child(self, kind: Kind, name: str) -> Manifest | None:
        """The object of that kind and name, if there is one."""
        return self.children.get((kind.kind, name))

    def planned(self, group_uid: str) -> PlannedGroup | None:
        """What the plan says of a group now, if it says anything."""
        groups = self.plan.groups if self.plan else ()
        return next((planned for planned in groups if planned.uid == group_uid), None)

    @property
    def ray_cluster(self) -> Manifest | None:
        """The RayCluster, if there is one."""
        return self.child(RAY_CLUSTER, self.key.name)

    def live_group(self, group_name: str) -> Manifest | None:
        """The worker group of that name in the RayCluster, as it is now."""
        spec = (self.ray_cluster or {}).get("spec", {})
        return next((group for group in spec.get("workerGroupSpecs") or () if group["groupName"] == group_name), None)

    def pods_of(self, component: Component, group_name: str | None = None) -> list[Manifest]:
        """Pods of a component (of one worker group) that are not being deleted."""
        wanted = {names.COMPONENT_LABEL: component} | ({"ray.io/group": group_name} if group_name else {})
        return [
            pod
            for pod in self.pods
            if wanted.items() <= pod["metadata"]["labels"].items() and "deletionTimestamp" not in pod["metadata"]
        ]

    @property
    def head(self) -> str | None:
        """Which life of which container is Ray's head now; None while none runs."""
        for pod in self.pods_of(Component.HEAD):
            for container in pod.get("status", {}).get("containerStatuses") or ():
                if container["name"] == Container.HEAD and "running" in container.get("state", {}):
                    return f"{pod['metadata']['uid']}/{container.get('containerID') or container['restartCount']}"
        return None


def node_group_of(pool: ResourcePool) -> str:
    """Name of the pool's worker group in the RayCluster."""
    return names.node_group(pool.name, pool.uid)


def is_running(pod: Manifest) -> bool:
    """Whether the pod's containers run, and nobody is about to take them away."""
    status: dict[str, Any] = pod.get("status", {})
    doomed = any(
        condition["type"] == "DisruptionTarget" and condition["status"] == "True"
        for condition in status.get("conditions") or ()
    )
    return status.get("phase") == "Running" and not doomed and "deletionTimestamp" not in pod["metadata"]


def runs_something(pod: Manifest) -> bool:
    """Whether one of the pod's containers runs now."""
    containers = pod.get("status", {}).get("containerStatuses") or ()
    return any("running" in container.get("state", {}) for container in containers)
