"""Builders of objects as the API server would have them."""

from datetime import UTC, datetime
from typing import Any

from workergroups_api.resource_pool import ResourcePool
from workergroups_api.worker_group import WorkerGroup
from workergroups_operator.membership import ClusterKey
from workergroups_operator.observe import Observed

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
KEY = ClusterKey("team", "actors")
CREATED = "2026-01-01T11:59:00Z"


def metadata(name: str, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "namespace": "team",
        "uid": f"uid-{name}",
        "generation": 1,
        "creationTimestamp": CREATED,
    } | more


def pool(name: str = "actors", processes: tuple[int, ...] = (2, 2), status: Any = None, **spec: Any) -> ResourcePool:
    body = {"metadata": metadata(name), "spec": {"processesPerNode": processes} | spec, "status": status or {}}
    return ResourcePool.model_validate(body)


def group(name: str = "trainer", pools: Any = ("actors",), status: Any = None, **spec: Any) -> WorkerGroup:
    refs = [ref if isinstance(ref, dict) else {"name": ref} for ref in pools]
    body = {
        "metadata": metadata(name),
        "spec": {"pools": refs, "worker": {"class": "train.Trainer"}} | spec,
        "status": status or {},
    }
    return WorkerGroup.model_validate(body)


def pod(component: str, name: str | None = None, phase: str = "Running", **status: Any) -> dict[str, Any]:
    labels = {"workergroups.dev/component": component}
    if component == "worker":
        labels["workergroups.dev/pool"] = "actors"
    return {
        "metadata": {"name": name or f"actors-{component}", "labels": labels},
        "spec": {
            "nodeSelector": {"nvidia.com/gpu.product": "A100"},
            "containers": [{"name": "ray-worker", "resources": {"limits": {"nvidia.com/gpu": "4"}}}],
        },
        "status": {"phase": phase} | status,
    }


def agent(available: bool = True, since: str = CREATED) -> dict[tuple[str, str], Any]:
    condition = {"type": "Available", "status": str(available), "lastTransitionTime": since}
    return {("Deployment", "actors-agent"): {"status": {"conditions": [condition]}}}


def reserved(*pods: str | None, bundles: int = 4) -> dict[str, Any]:
    nodes = [{"index": index, "state": "Reserved" if pod else "Waiting", "pod": pod} for index, pod in enumerate(pods)]
    joined = sum(pod is not None for pod in pods)
    return {
        "observedGeneration": 1,
        "joinedNodes": joined,
        "reservedBundles": bundles,
        "totalBundles": 4,
        "nodes": nodes,
    }


def ready_pool(**more: Any) -> ResourcePool:
    return pool(status={"reservation": reserved("p-0", "p-1")} | more)


def observed(**parts: Any) -> Observed:
    defaults: dict[str, Any] = {"key": KEY, "pods": (pod("head"),), "children": agent()}
    return Observed(**(defaults | parts))
