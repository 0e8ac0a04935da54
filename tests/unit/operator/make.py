"""Builders of objects as the API server would have them."""

from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime
from typing import Any

from kubernetes.aio.client.exceptions import ApiException
from kubernetes.aio.dynamic.exceptions import DynamicApiError, api_exception

from workergroups_api.launch import digest, revision
from workergroups_api.manifest import Kind
from workergroups_api.names import API_VERSION
from workergroups_api.report import GroupReport, pods_digest
from workergroups_api.resource_pool import ResourcePool
from workergroups_api.worker_group import WorkerGroup
from workergroups_common.ranges import braces, ranges
from workergroups_kube import RefusedObject
from workergroups_operator.decisions import Decisions, decide
from workergroups_operator.desired import desired
from workergroups_operator.desired.token import FreshSecrets
from workergroups_operator.failures import Failures
from workergroups_operator.membership import ClusterKey
from workergroups_operator.observed import AgentHeartbeat, Observed
from workergroups_operator.settings import Settings
from workergroups_operator.status import Statuses, status
from workergroups_operator.status.conclusion import StatusUpdate
from workergroups_operator.templates import Templates, templates_of
from workergroups_operator.timings import Timings

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
KEY = ClusterKey("team", "actors")
CREATED = "2026-01-01T11:59:00Z"
SETTINGS = Settings(worker_image="example.test/worker:1", operator_image="example.test/operator:1")
TIMINGS = Timings()
SESSION = "session-1"
# Of the head that `pod("head")` makes.
HEAD = "uid-actors-head/life-1"
CONNECTED = AgentHeartbeat(session=SESSION, seen_with_head_seconds=10.0)
NODE_GROUP = "actors-uid-acto"
# The status of a pod that is being evicted.
EVICTED = {"conditions": [{"type": "DisruptionTarget", "status": "True", "message": "preempted by team-b/x"}]}
# What the agent says of a group whose ranks are all ready.
RANKS = {"session": SESSION, "incarnation": 1, "state": "Launched", "created": 4, "readyCount": 4, "ready": "0-3"}


def metadata(name: str, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "namespace": "team",
        "uid": f"uid-{name}",
        "generation": 1,
        "creationTimestamp": CREATED,
    } | more


def pool(name: str = "actors", nodes: int = 2, processes: int = 2, status: Any = None, **spec: Any) -> ResourcePool:
    shape = {"nodes": nodes, "processesPerNode": processes}
    return ResourcePool.model_validate({"metadata": metadata(name), "spec": shape | spec, "status": status or {}})


def group(name: str = "trainer", pools: Any = ("actors",), status: Any = None, **spec: Any) -> WorkerGroup:
    refs = [ref if isinstance(ref, dict) else {"name": ref} for ref in pools]
    body = {
        "metadata": metadata(name),
        "spec": {"pools": refs, "worker": {"class": "train.Trainer"}} | spec,
        "status": status or {},
    }
    return WorkerGroup.model_validate(body)


def owned_by(*uids: str) -> list[dict[str, str]]:
    return [{"apiVersion": API_VERSION, "kind": "ResourcePool", "name": uid, "uid": uid} for uid in uids]


def child(kind: str, name: str, *owners: str, **more: Any) -> dict[tuple[str, str], Any]:
    """An object that the operator made for the pool `actors`, unless other owners are named."""
    body = {
        "kind": kind,
        "metadata": {
            "name": name,
            "uid": f"uid-{kind}",
            "labels": {"workergroups.dev/cluster": "actors"},
            "ownerReferences": owned_by(*(owners or ("uid-actors",))),
        }
        | more.pop("metadata", {}),
    }
    return {(kind, name): body | more}


ACCOUNT = child("ServiceAccount", "actors-agent")


def pod(component: str, name: str | None = None, phase: str = "Running", **status: Any) -> dict[str, Any]:
    name = name or f"actors-{component}"
    labels = {"workergroups.dev/component": component}
    if component == "worker":
        labels |= {"workergroups.dev/pool": "actors", "ray.io/group": NODE_GROUP}
    if component == "head" and phase == "Running":
        running = {"name": "ray-head", "containerID": "life-1", "restartCount": 0, "state": {"running": {}}}
        status = {"containerStatuses": [running]} | status
    return {
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "labels": labels,
            "annotations": {"workergroups.dev/template": "an older one"},
        },
        "spec": {
            "nodeSelector": {"nvidia.com/gpu.product": "A100"},
            "containers": [{"name": "ray-worker", "resources": {"limits": {"nvidia.com/gpu": "4"}}}],
        },
        "status": {"phase": phase} | status,
    }


def workers(*names: str) -> tuple[dict[str, Any], ...]:
    return tuple(pod("worker", name) for name in names)


def reservation(*pods: str, reserved: int | None = None, session: str = SESSION, **more: Any) -> dict[str, Any]:
    """What the agent says of a pool whose nodes are these pods."""
    count = len(pods) if reserved is None else reserved
    report = {
        "generation": 1,
        "plannedNodes": len(pods),
        "joinedNodes": len(pods),
        "joinedPods": pods_digest(pods),
        "reservedNodes": count,
        "reserved": ranges(range(count)),
        "pods": braces(pods[:count]),
        "session": session,
    }
    return {"reservation": report | more}


def ready_pool(**more: Any) -> ResourcePool:
    return pool(status=reservation("p-0", "p-1") | more)


def observed(**parts: Any) -> Observed:
    """A cluster whose head and two workers run, and whose agent is connected."""
    defaults: dict[str, Any] = {
        "key": KEY,
        "at": NOW,
        "pods": (pod("head"), *workers("p-0", "p-1")),
        "agent": CONNECTED,
    }
    defaults["launch_revisions"] = {each.name: written(each) for each in parts.get("groups", ())}
    defaults["run_revisions"] = {each.name: digest(each.launch.to_json()) for each in parts.get("groups", ())}
    return Observed(**(defaults | parts))


def written(subject: WorkerGroup) -> str | None:
    return revision(subject.launch, (subject.status.ranks or GroupReport()).code)


def decided(seen: Observed, refused_pods: Any = None) -> Decisions:
    return decide(seen, built(seen), refused_pods or {}, TIMINGS)


def built(seen: Observed) -> Templates:
    return templates_of(seen, SETTINGS)


def wanted(seen: Observed, refused_pods: Any = None) -> list[dict[str, Any]]:
    """All manifests of a cluster."""
    return desired(seen, built(seen), decided(seen, refused_pods), SETTINGS.network, fresh=FreshSecrets("fresh", "ab"))


def of_kind(kind: str, manifests: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The only manifest of that kind."""
    (found,) = [each for each in manifests if each["kind"] == kind]
    return found


def statuses(
    seen: Observed, failures: Failures | None = None, now: datetime = NOW, refused_pods: Any = None
) -> Statuses:
    return status(seen, built(seen), decided(seen, refused_pods), failures or Failures({}), TIMINGS, now)


def status_of(seen: Observed, **more: Any) -> StatusUpdate:
    """The status of the last object."""
    return statuses(seen, **more).updates[-1]


def api_error(status: int, words: str = "no") -> DynamicApiError:
    """What Kubernetes' client raises if the API server answers with that status and these words."""
    answer = ApiException(status=status)
    answer.body = words
    return api_exception(answer)


class Reads:
    """For clients that have nothing but `get`."""

    get: Callable[..., Awaitable[Any]]

    async def get_made(self, kind: Kind, namespace: str, name: str, make: Callable[[Any], Awaitable[Any]]) -> Any:
        try:
            found = await self.get(kind, namespace, name)
        except RefusedObject as error:
            found = error
        return None if found is None else await make(found)
