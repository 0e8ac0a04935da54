"""A small controller that plays Kueue's part with RayClusters on a real API server, and says if we break its rules.

What it rests on, as read in the source of Kueue v0.20 (its integration of RayClusters, its generic job reconciler and
its pod sets), in our own words:

- A mutating webhook, on creation only, sets `spec.suspend: true` on a RayCluster that names a queue by its label.
- A validating webhook refuses another queue name while the RayCluster is not suspended.
- Kueue creates a Workload, owned by the RayCluster, with the label `kueue.x-k8s.io/job-uid` and a pod set for the head
  and for each worker group: its count and its template.
- Its scheduler sets the conditions QuotaReserved and Admitted, and which flavors each pod set gets.
- An admitted RayCluster is resumed by one merge patch that carries the resourceVersion. It also merges labels,
  annotations, node selectors and tolerations of the flavors into the templates of head and worker groups.
- On each look, Kueue compares the pod sets of the RayCluster with those of the Workload: number, counts, containers,
  init containers, and tolerations until it is admitted. While the Workload has quota, it expects what it merged in.
  If they differ, it suspends a running RayCluster, restores the templates, and deletes the Workload, unless that
  has no quota yet: then it updates the Workload.
- A Workload that is evicted has its RayCluster suspended and its templates restored in one patch. Its quota is given
  back when KubeRay no longer reports the RayCluster as ready. Then it waits for quota again.
- A running RayCluster without a Workload is suspended.

The real one also has admission checks, topology, partial admission, elastic jobs and MultiKueue: none of them is here.
"""

import asyncio
import base64
import copy
import json
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from aiohttp import web

from tests.simulation.api import MERGE, Api, ApiError, eventually, path_of
from workergroups_api.manifest import RAY_CLUSTER, Kind, Manifest

QUEUE = "kueue.x-k8s.io/queue-name"
JOB_UID = "kueue.x-k8s.io/job-uid"
WORKLOAD = Kind("kueue.x-k8s.io/v1beta2", "Workload", "workloads")
FLAVOR = {
    "labels": {"kueue.x-k8s.io/podset": "one"},
    "annotations": {"kueue.x-k8s.io/workload": "one"},
    "nodeSelector": {"cloud.example/flavor": "spot"},
    "tolerations": [{"key": "cloud.example/spot", "operator": "Exists", "effect": "NoSchedule"}],
}
_CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"{WORKLOAD.plural}.{WORKLOAD.group}"},
    "spec": {
        "group": WORKLOAD.group,
        "scope": "Namespaced",
        "names": {"kind": WORKLOAD.kind, "plural": WORKLOAD.plural, "singular": "workload", "listKind": "WorkloadList"},
        "versions": [
            {
                "name": WORKLOAD.version,
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                },
            }
        ],
    },
}
_EVERY = 0.05


class KueueContract:
    """Kueue for the RayClusters of one namespace. `quota` clusters are admitted at a time, the oldest first."""

    def __init__(self, api: Api, namespace: str, quota: int) -> None:
        self.api = api
        self.namespace = namespace
        self.quota = quota
        # Whenever a running RayCluster did not ask for what was admitted: how it differed.
        self.broken: list[str] = []
        # Whenever a RayCluster was suspended: why.
        self.stopped: list[str] = []
        # Names of Workloads that must give way.
        self._victims: dict[str, str] = {}

    @classmethod
    @asynccontextmanager
    async def run(cls, api: Api, namespace: str, directory: Path, quota: int = 1) -> AsyncIterator[Self]:
        """Serve the webhooks and control the namespace's RayClusters within the context."""
        with suppress(ApiError):  # Another test of this API server may have installed it.
            await api.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", _CRD)
        kueue = cls(api, namespace, quota)
        await eventually("the kind Workload", kueue._can_list, seconds=30)
        async with kueue._webhooks(directory):
            control = asyncio.create_task(kueue._control())
            try:
                yield kueue
            finally:
                control.cancel()
                with suppress(asyncio.CancelledError):
                    await control

    async def workloads(self) -> list[Manifest]:
        """Return the namespace's Workloads."""
        return await self.api.list(WORKLOAD, self.namespace)

    async def _can_list(self) -> bool:
        try:
            await self.workloads()
        except ApiError:  # Their kind is being installed.
            return False
        return True

    def preempt(self, cluster: str, message: str) -> None:
        """Evict a RayCluster, as for one of a higher priority."""
        self._victims[cluster] = message

    async def _control(self) -> None:
        while True:
            try:
                clusters = await self.api.list(RAY_CLUSTER, self.namespace)
                await self._forget({cluster["metadata"]["uid"] for cluster in clusters})
                for cluster in clusters:
                    if QUEUE in cluster["metadata"].get("labels", {}):
                        await self._reconcile(cluster)
                await self._schedule()
            except ApiError as error:
                if error.status not in (404, 409):
                    raise
            await asyncio.sleep(_EVERY)

    async def _forget(self, present: set[str]) -> None:
        """Delete the Workloads of RayClusters that are gone: here, the garbage collector learns of their kind late."""
        for workload in await self.workloads():
            if workload["metadata"]["labels"][JOB_UID] not in present:
                await self.api.delete(WORKLOAD, self.namespace, workload["metadata"]["name"])

    async def _reconcile(self, cluster: Manifest) -> None:
        name, running = cluster["metadata"]["name"], not cluster["spec"].get("suspend")
        workload = await self._workload_of(cluster)
        if workload is None:
            if running:
                await self._stop(cluster, None, "it has no Workload")
            else:
                await self._create(cluster)
            return
        if (difference := _difference(cluster, workload)) is not None:
            await self._mismatch(cluster, workload, difference)
        elif (evicted := _condition(workload, "Evicted")).get("status") == "True":
            if running:
                await self._stop(cluster, workload, f"evicted: {evicted['message']}")
            elif _is_reserved(workload) and cluster.get("status", {}).get("state") != "ready":
                await self._conditions(workload, _quota_lost(evicted), admission=None)
        elif name in self._victims and running:
            await self._conditions(workload, [_set("Evicted", "True", "Preempted", self._victims.pop(name))])
        elif not running and _condition(workload, "Admitted").get("status") == "True":
            await self._start(cluster, workload)
        elif running and _condition(workload, "Admitted").get("status") != "True":
            await self._stop(cluster, workload, "it is not admitted")

    async def _mismatch(self, cluster: Manifest, workload: Manifest, difference: str) -> None:
        if not cluster["spec"].get("suspend"):
            self.broken.append(difference)
            await self._stop(cluster, workload, difference)
        if _is_reserved(workload):
            await self.api.delete(WORKLOAD, self.namespace, workload["metadata"]["name"])
        else:
            patch = {"spec": {"podSets": _pod_sets(cluster)}}
            await self.api.merge(WORKLOAD, self.namespace, workload["metadata"]["name"], patch)

    async def _schedule(self) -> None:
        workloads = sorted(await self.workloads(), key=lambda each: each["metadata"]["creationTimestamp"])
        taken = sum(map(_is_reserved, workloads))
        for workload in workloads:
            if _is_reserved(workload):
                continue
            if taken < self.quota:
                taken += 1
                queue = {"clusterQueue": "research-gpus"}
                admitted = [_set("QuotaReserved", "True", "QuotaReserved", "quota is reserved")]
                admitted += [_set("Admitted", "True", "Admitted", "the cluster is admitted")]
                admitted += [_set("Evicted", "False", "QuotaReserved", "previously evicted")]
                await self._conditions(workload, admitted, admission=queue)
            elif not _condition(workload, "QuotaReserved"):
                why = "couldn't assign flavors to pod set head: insufficient unused quota"
                await self._conditions(workload, [_set("QuotaReserved", "False", "WaitingForQuota", why)])

    async def _start(self, cluster: Manifest, workload: Manifest) -> None:
        spec = copy.deepcopy(cluster["spec"])
        for template in _templates(spec):
            _merge_flavor(template)
        await self._patch(cluster, spec | {"suspend": False})

    async def _stop(self, cluster: Manifest, workload: Manifest | None, why: str) -> None:
        self.stopped.append(why)
        spec = copy.deepcopy(cluster["spec"])
        was = [each["template"] for each in workload["spec"]["podSets"]] if workload else []
        if len(was) == len(_templates(spec)):
            for template, before in zip(_templates(spec), was, strict=True):
                _restore(template, before)
        await self._patch(cluster, spec | {"suspend": True})

    async def _patch(self, cluster: Manifest, spec: Manifest) -> None:
        """Write what Kueue owns of a RayCluster, as one merge patch that fails if somebody was quicker."""
        changed = {key: value for key, value in spec.items() if cluster["spec"].get(key) != value}
        patch = {"metadata": {"resourceVersion": cluster["metadata"]["resourceVersion"]}, "spec": changed}
        path = path_of(RAY_CLUSTER, self.namespace, cluster["metadata"]["name"])
        await self.api.request("PATCH", path, patch, MERGE, fieldManager="kueue")

    async def _workload_of(self, cluster: Manifest) -> Manifest | None:
        uid = cluster["metadata"]["uid"]
        found = [each for each in await self.workloads() if each["metadata"]["labels"].get(JOB_UID) == uid]
        return found[0] if found else None

    async def _create(self, cluster: Manifest) -> None:
        metadata = cluster["metadata"]
        owner = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": metadata["name"], "uid": metadata["uid"]}
        body = {
            "apiVersion": WORKLOAD.api_version,
            "kind": WORKLOAD.kind,
            "metadata": {
                "generateName": f"raycluster-{metadata['name']}-",
                "labels": {JOB_UID: metadata["uid"]},
                "ownerReferences": [owner | {"controller": True, "blockOwnerDeletion": True}],
            },
            "spec": {"queueName": metadata["labels"][QUEUE], "active": True, "podSets": _pod_sets(cluster)},
        }
        await self.api.request("POST", path_of(WORKLOAD, self.namespace), body)

    async def _conditions(self, workload: Manifest, new: list[Manifest], **status: Any) -> None:
        types = {each["type"] for each in new}
        kept = [each for each in workload.get("status", {}).get("conditions", ()) if each["type"] not in types]
        patch = {"status": {"conditions": [*kept, *new], **status}}
        await self.api.merge(WORKLOAD, self.namespace, workload["metadata"]["name"], patch, "status")

    @asynccontextmanager
    async def _webhooks(self, directory: Path) -> AsyncIterator[None]:
        made, key = certificate(directory)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(made, key)
        server = web.Application()
        server.add_routes([web.post("/mutate", _mutate), web.post("/validate", _validate)])
        runner = web.AppRunner(server)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
        await site.start()
        port = site._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]
        try:
            await self._register(port, base64.b64encode(made.read_bytes()).decode())
            yield
        finally:
            for kind in _WEBHOOKS:
                await self.api.request("DELETE", f"{_ADMISSION}/{kind}/kueue-{self.namespace}")
            await runner.cleanup()

    async def _register(self, port: int, authority: str) -> None:
        for kind, (title, path, operations) in _WEBHOOKS.items():
            webhook = {
                "name": "raycluster.kueue.test",
                "clientConfig": {"url": f"https://127.0.0.1:{port}{path}", "caBundle": authority},
                "rules": [
                    {
                        "apiGroups": ["ray.io"],
                        "apiVersions": ["v1"],
                        "resources": ["rayclusters"],
                        "operations": operations,
                    }
                ],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": self.namespace}},
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": "Fail",
            }
            body = {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": title,
                "metadata": {"name": f"kueue-{self.namespace}"},
                "webhooks": [webhook],
            }
            await self.api.request("POST", f"{_ADMISSION}/{kind}", body)


def certificate(directory: Path) -> tuple[Path, Path]:
    """Make a certificate for the webhooks' server, with its key."""
    certificate, key = directory / "webhook.crt", directory / "webhook.key"
    request = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    where = ["-keyout", str(key), "-out", str(certificate), "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*request, *where, "-subj", "/CN=kueue", "-days", "2"], check=True, capture_output=True)
    return certificate, key


_ADMISSION = "/apis/admissionregistration.k8s.io/v1"
_WEBHOOKS = {
    "mutatingwebhookconfigurations": ("MutatingWebhookConfiguration", "/mutate", ["CREATE"]),
    "validatingwebhookconfigurations": ("ValidatingWebhookConfiguration", "/validate", ["UPDATE"]),
}


async def _mutate(request: web.Request) -> web.Response:
    asked = (await request.json())["request"]
    is_queued = QUEUE in asked["object"]["metadata"].get("labels", {})
    if not is_queued or asked["object"]["spec"].get("suspend"):
        return _answer(asked, allowed=True)
    patch = json.dumps([{"op": "add", "path": "/spec/suspend", "value": True}]).encode()
    return _answer(asked, allowed=True, patchType="JSONPatch", patch=base64.b64encode(patch).decode())


async def _validate(request: web.Request) -> web.Response:
    asked = (await request.json())["request"]
    old, new = (asked[key]["metadata"].get("labels", {}).get(QUEUE) for key in ("oldObject", "object"))
    is_fine = old == new or bool(asked["object"]["spec"].get("suspend"))
    return _answer(asked, allowed=is_fine, status={"message": f"metadata.labels[{QUEUE}]: field is immutable"})


def _answer(asked: Manifest, *, allowed: bool, **more: Any) -> web.Response:
    response = {"uid": asked["uid"], "allowed": allowed, **more}
    return web.json_response({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})


def _templates(spec: Manifest) -> list[Manifest]:
    return [spec["headGroupSpec"]["template"], *(group["template"] for group in spec["workerGroupSpecs"])]


def _pod_sets(cluster: Manifest) -> list[Manifest]:
    spec = copy.deepcopy(cluster["spec"])
    names = [("head", 1), *((group["groupName"], group["replicas"]) for group in spec["workerGroupSpecs"])]
    pairs = zip(names, _templates(spec), strict=True)
    return [{"name": name, "count": count, "template": template} for (name, count), template in pairs]


def _difference(cluster: Manifest, workload: Manifest) -> str | None:
    """Return how the RayCluster's pod sets differ from those of the Workload; None if Kueue finds them equal."""
    asked, admitted = _pod_sets(cluster), copy.deepcopy(workload["spec"]["podSets"])
    if [each["name"] for each in asked] != [each["name"] for each in admitted]:
        return f"pod sets {[each['name'] for each in asked]} instead of {[each['name'] for each in admitted]}"
    is_merged = _is_reserved(workload) and not cluster["spec"].get("suspend")
    for one, other in zip(asked, admitted, strict=True):
        if is_merged:
            _merge_flavor(other["template"])
        if one["count"] != other["count"]:
            return f"{one['name']}: {one['count']} pods instead of {other['count']}"
        for field in ("containers", "initContainers"):
            if one["template"]["spec"].get(field) != other["template"]["spec"].get(field):
                return f"{one['name']}: other {field}"
        # Kueue itself does not look at these again, so that pods would come without what the admission demands.
        if is_merged and not _has_flavor(one["template"]):
            return f"{one['name']}: what the admission added is gone"
    return None


def _merge_flavor(template: Manifest) -> None:
    metadata, spec = template.setdefault("metadata", {}), template["spec"]
    metadata["labels"] = metadata.get("labels", {}) | FLAVOR["labels"]
    metadata["annotations"] = metadata.get("annotations", {}) | FLAVOR["annotations"]
    spec["nodeSelector"] = spec.get("nodeSelector", {}) | FLAVOR["nodeSelector"]
    tolerations = spec.get("tolerations") or []
    spec["tolerations"] = [*tolerations, *(each for each in FLAVOR["tolerations"] if each not in tolerations)]


def _has_flavor(template: Manifest) -> bool:
    merged = copy.deepcopy(template)
    _merge_flavor(merged)
    return merged == template


def _restore(template: Manifest, before: Manifest) -> None:
    template["metadata"] = {
        key: value for key, value in template["metadata"].items() if key not in ("labels", "annotations")
    } | {key: before["metadata"][key] for key in ("labels", "annotations") if key in before["metadata"]}
    for field in ("nodeSelector", "tolerations"):
        template["spec"].pop(field, None)
        if field in before["spec"]:
            template["spec"][field] = before["spec"][field]


def _condition(workload: Manifest, type_: str) -> Manifest:
    conditions = workload.get("status", {}).get("conditions", ())
    return next((each for each in conditions if each["type"] == type_), {})


def _is_reserved(workload: Manifest) -> bool:
    return _condition(workload, "QuotaReserved").get("status") == "True"


def _set(type_: str, status: str, reason: str, message: str) -> Manifest:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": now}


def _quota_lost(evicted: Manifest) -> list[Manifest]:
    message = evicted["message"]
    return [
        _set("QuotaReserved", "False", "PendingEvaluation", message),
        _set("Admitted", "False", "NoReservation", "the workload has no reservation"),
        _set("Requeued", "True", evicted["reason"], message),
    ]
