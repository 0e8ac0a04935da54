"""Kueue's objects for one test: flavors, queues, cohorts and priorities, all of them with names of the namespace."""

from typing import Any

from tests.simulation.api import Api, eventually, path_of
from tests.simulation.machines import HOSTNAME
from workergroups_api.manifest import NODE, RAY_CLUSTER, Kind, Manifest

VERSION = "kueue.x-k8s.io/v1beta2"
FLAVOR = Kind(VERSION, "ResourceFlavor", "resourceflavors", is_namespaced=False)
CLUSTER_QUEUE = Kind(VERSION, "ClusterQueue", "clusterqueues", is_namespaced=False)
TOPOLOGY = Kind(VERSION, "Topology", "topologies", is_namespaced=False)
LOCAL_QUEUE = Kind(VERSION, "LocalQueue", "localqueues")
CHECK = Kind(VERSION, "AdmissionCheck", "admissionchecks", is_namespaced=False)
PRIORITY = Kind(VERSION, "WorkloadPriorityClass", "workloadpriorityclasses", is_namespaced=False)
WORKLOAD = Kind(VERSION, "Workload", "workloads")
GPU = "nvidia.com/gpu"
BLOCK = "cloud.example/block"
_KINDS = (FLAVOR, CLUSTER_QUEUE, LOCAL_QUEUE, CHECK, PRIORITY, TOPOLOGY, NODE)
_NOW = "2026-01-01T00:00:00Z"
PLENTY = {"cpu": "10000", "memory": "10000Gi"}


class Queues:
    """The queues of a namespace. Only GPUs are scarce."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._api = api
        self._namespace = namespace
        self._made: list[Manifest] = []

    async def flavor(self, name: str, toleration: bool = False) -> str:
        """Create a flavor whose nodes have a label of its name; return its full name."""
        tolerations = (
            [{"key": "cloud.example/spot", "operator": "Exists", "effect": "NoSchedule"}] if toleration else []
        )
        spec = {"nodeLabels": {"cloud.example/flavor": name}, "tolerations": tolerations}
        return await self._make(FLAVOR, f"{self._namespace}-{name}", spec)

    async def topology(self, blocks: dict[str, int]) -> str:
        """Create nodes with two GPUs each, that many in each block, and a flavor of them; return its full name."""
        levels = [{"nodeLabel": BLOCK}, {"nodeLabel": HOSTNAME}]
        name = await self._make(TOPOLOGY, f"{self._namespace}-blocks", {"levels": levels})
        labels = {"cloud.example/flavor": name}
        for block, count in blocks.items():
            for number in range(count):
                await self._node(f"{name}-{block}-{number}", labels | {BLOCK: block})
        return await self._make(FLAVOR, name, {"nodeLabels": labels, "topologyName": name})

    async def _node(self, name: str, labels: dict[str, str]) -> None:
        body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels | {HOSTNAME: name}}}
        await self._create(NODE, body)
        # What removes the taint of a node that was not ready does not run here.
        await self._api.merge(NODE, None, name, {"spec": {"taints": None}})
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}
        has = {"cpu": "100", "memory": "1000Gi", "pods": "100", GPU: "2"}
        await self._api.merge(NODE, None, name, {"status": {"conditions": [ready], "allocatable": has}}, "status")

    async def queue(self, name: str, gpus: dict[str, int], cohort: str | None = None, **spec: Any) -> str:
        """Create a ClusterQueue with GPUs of each flavor, and the LocalQueue of that name; return its full name."""
        flavors = [{"name": flavor, "resources": _resources(count)} for flavor, count in gpus.items()]
        groups = [{"coveredResources": [*PLENTY, GPU], "flavors": flavors}]
        within = {"cohortName": f"{self._namespace}-{cohort}"} if cohort else {}
        full = f"{self._namespace}-{name}"
        await self._make(CLUSTER_QUEUE, full, {"namespaceSelector": {}, "resourceGroups": groups, **within, **spec})
        await self._make(LOCAL_QUEUE, name, {"clusterQueue": full}, self._namespace)
        return full

    async def set_gpus(self, queue: str, gpus: dict[str, int]) -> None:
        """Change how many GPUs of each flavor a ClusterQueue has."""
        flavors = [{"name": flavor, "resources": _resources(count)} for flavor, count in gpus.items()]
        groups = [{"coveredResources": [*PLENTY, GPU], "flavors": flavors}]
        await self._api.merge(CLUSTER_QUEUE, None, queue, {"spec": {"resourceGroups": groups}})

    async def stop(self, queue: str) -> None:
        """Make a ClusterQueue evict what it has admitted, and admit nothing."""
        await self._api.merge(CLUSTER_QUEUE, None, queue, {"spec": {"stopPolicy": "HoldAndDrain"}})

    async def check(self, name: str) -> str:
        """Create an admission check, whose controller is the test; return its full name."""
        full = await self._make(CHECK, f"{self._namespace}-{name}", {"controllerName": "example.com/tests"})
        active = {"type": "Active", "status": "True", "reason": "Active", "message": "", "lastTransitionTime": _NOW}
        await self._api.merge(CHECK, None, full, {"status": {"conditions": [active]}}, "status")
        return full

    async def answer(self, check: str, cluster: str, state: str, labels: dict[str, str] | None = None) -> None:
        """Answer the check of a RayCluster's Workload; its pods must then run on nodes with these labels."""

        async def is_asked() -> Manifest | None:
            found = await self.workload(cluster)
            checks = (found or {}).get("status", {}).get("admissionChecks", ())
            return found if any(each["name"] == check for each in checks) else None

        workload = await eventually(f"a Workload of {cluster} that waits for {check}", is_asked)
        updates = [{"name": each["name"], "nodeSelector": labels} for each in workload["spec"]["podSets"] if labels]
        answered = {"name": check, "state": state, "message": "", "lastTransitionTime": _NOW, "podSetUpdates": updates}
        patch = {"status": {"admissionChecks": [answered]}}
        await self._api.merge(WORKLOAD, self._namespace, workload["metadata"]["name"], patch, "status")

    async def priority(self, name: str, value: int) -> str:
        """Create a class of priorities; return its full name."""
        body = {"apiVersion": VERSION, "kind": PRIORITY.kind, "metadata": {"name": f"{self._namespace}-{name}"}}
        await self._create(PRIORITY, {**body, "value": value, "description": ""})
        return f"{self._namespace}-{name}"

    async def workload(self, cluster: str) -> Manifest | None:
        """Return the Workload of a RayCluster."""
        found = await self._api.list(WORKLOAD, self._namespace)
        owned = [each for each in found if each["metadata"]["ownerReferences"][0]["name"] == cluster]
        return owned[0] if owned else None

    async def evictions(self) -> int:
        """Return how many evictions the namespace's Workloads have had."""
        found = await self._api.list(WORKLOAD, self._namespace)
        counts = [
            state for each in found for state in each.get("status", {}).get("schedulingStats", {}).get("evictions", ())
        ]
        return sum(int(each["count"]) for each in counts)

    async def suspended(self, cluster: str) -> Manifest:
        """Wait until a RayCluster is suspended."""

        async def is_suspended() -> Manifest | None:
            found = await self._api.get(RAY_CLUSTER, self._namespace, cluster)
            return found if found and found["spec"].get("suspend") else None

        found: Manifest = await eventually(f"a suspended RayCluster {cluster}", is_suspended)
        return found

    async def remove(self) -> None:
        """Delete all of them."""
        for each in reversed(self._made):
            kind = next(kind for kind in _KINDS if kind.kind == each["kind"])
            await self._api.delete(kind, each["metadata"].get("namespace"), each["metadata"]["name"])

    async def _make(self, kind: Kind, name: str, spec: Manifest, namespace: str | None = None) -> str:
        metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
        body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": spec}
        await self._create(kind, body)
        return name

    async def _create(self, kind: Kind, body: Manifest) -> None:
        path = path_of(kind, body["metadata"].get("namespace"))
        self._made.append(await self._api.request("POST", path, body))


def _resources(gpus: int) -> list[Manifest]:
    return [{"name": name, "nominalQuota": quota} for name, quota in {**PLENTY, GPU: str(gpus)}.items()]
