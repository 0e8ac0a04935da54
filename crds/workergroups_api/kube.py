"""How operator and agent talk to the API server: plain dicts, server-side apply, no discovery."""

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Self

from kubernetes.aio.client.api_client import ApiClient
from kubernetes.aio.config import load_incluster_config, load_kube_config
from kubernetes.aio.dynamic import DynamicClient, Resource, Subresource
from kubernetes.aio.dynamic.exceptions import DynamicApiError, NotFoundError

from workergroups_api.names import API_VERSION

Manifest = dict[str, Any]
REQUEST_TIMEOUT_SECONDS = 30


@dataclass(frozen=True)
class Kind:
    """A namespaced kind and its plural; spelled out, so that no discovery is needed and no cache can be stale."""

    api_version: str
    kind: str
    plural: str


RESOURCE_POOL = Kind(API_VERSION, "ResourcePool", "resourcepools")
WORKER_GROUP = Kind(API_VERSION, "WorkerGroup", "workergroups")
RAY_CLUSTER = Kind("ray.io/v1", "RayCluster", "rayclusters")
DEPLOYMENT = Kind("apps/v1", "Deployment", "deployments")
POD = Kind("v1", "Pod", "pods")
SECRET = Kind("v1", "Secret", "secrets")
CONFIG_MAP = Kind("v1", "ConfigMap", "configmaps")
SERVICE_ACCOUNT = Kind("v1", "ServiceAccount", "serviceaccounts")
ROLE = Kind("rbac.authorization.k8s.io/v1", "Role", "roles")
ROLE_BINDING = Kind("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings")
EVENT = Kind("events.k8s.io/v1", "Event", "events")

KINDS = {
    (kind.api_version, kind.kind): kind
    for kind in (
        RESOURCE_POOL,
        WORKER_GROUP,
        RAY_CLUSTER,
        DEPLOYMENT,
        POD,
        SECRET,
        CONFIG_MAP,
        SERVICE_ACCOUNT,
        ROLE,
        ROLE_BINDING,
        EVENT,
    )
}


def api_error_message(error: DynamicApiError) -> str:
    """The API server's own sentence, or what else is known of the failure."""
    try:
        message = error.summary()
    except (AttributeError, KeyError, ValueError, TypeError):
        message = None
    return str(message or f"{error.status} {error.reason}")


class Kube:
    """A connection that writes under one field manager."""

    def __init__(self, api: ApiClient, field_manager: str) -> None:
        self._client = DynamicClient(api)
        self._field_manager = field_manager

    @classmethod
    @asynccontextmanager
    async def connect(cls, field_manager: str) -> AsyncIterator[Self]:
        """By the pod's service account, or else by kubeconfig."""
        if "KUBERNETES_SERVICE_HOST" in os.environ:
            load_incluster_config()
        else:
            await load_kube_config()
        async with ApiClient() as api:
            yield cls(api, field_manager)

    def _resource(self, kind: Kind, subresource: str | None = None) -> Any:
        group, _, version = kind.api_version.rpartition("/")
        resource = Resource(
            prefix="apis" if group else "api",
            group=group,
            api_version=version,
            kind=kind.kind,
            name=kind.plural,
            namespaced=True,
            client=self._client,
        )
        if subresource is None:
            return resource
        return Subresource(resource, kind=kind.kind, name=f"{kind.plural}/{subresource}", namespaced=True)

    async def get(self, kind: Kind, namespace: str, name: str) -> Manifest | None:
        """The object, or None if there is none (or if its kind is not installed)."""
        try:
            found = await self._resource(kind).get(
                namespace=namespace, name=name, _request_timeout=REQUEST_TIMEOUT_SECONDS
            )
        except NotFoundError:
            return None
        return dict(found.to_dict())

    async def list(self, kind: Kind, namespace: str, **selectors: str) -> list[Manifest]:
        """Objects of a namespace by `label_selector` or `field_selector`."""
        found = await self._resource(kind).get(
            namespace=namespace, _request_timeout=REQUEST_TIMEOUT_SECONDS, **selectors
        )
        return list(found.to_dict()["items"])

    async def apply(self, manifest: Mapping[str, Any], subresource: str | None = None) -> Manifest:
        """Server-side apply; takes over fields that another manager holds."""
        kind = KINDS[manifest["apiVersion"], manifest["kind"]]
        applied = await self._resource(kind, subresource).server_side_apply(
            body=dict(manifest),
            name=manifest["metadata"]["name"],
            namespace=manifest["metadata"]["namespace"],
            field_manager=self._field_manager,
            force_conflicts=True,
            _request_timeout=REQUEST_TIMEOUT_SECONDS,
        )
        return dict(applied.to_dict())

    async def create(self, manifest: Mapping[str, Any]) -> None:
        """Create an object that nobody changes later, such as an event."""
        kind = KINDS[manifest["apiVersion"], manifest["kind"]]
        await self._resource(kind).create(
            body=dict(manifest),
            namespace=manifest["metadata"]["namespace"],
            field_manager=self._field_manager,
            _request_timeout=REQUEST_TIMEOUT_SECONDS,
        )

    async def follow(
        self, kind: Kind, namespace: str, name: str, resync_seconds: int
    ) -> AsyncIterator[Manifest | None]:
        """One object now and after each change, None while it does not exist; never ends by itself.

        Reads the object again every `resync_seconds`, so that a watch that went silent costs no more than that.
        """
        resource = self._resource(kind)
        selector = f"metadata.name={name}"
        while True:
            listed = (
                await resource.get(
                    namespace=namespace, field_selector=selector, _request_timeout=REQUEST_TIMEOUT_SECONDS
                )
            ).to_dict()
            yield next(iter(listed["items"]), None)
            watch = self._client.watch(
                resource,
                namespace=namespace,
                field_selector=selector,
                resource_version=listed["metadata"]["resourceVersion"],
                timeout=resync_seconds,
            )
            async for event in watch:
                if event["type"] == "ERROR":
                    break
                yield None if event["type"] == "DELETED" else event["raw_object"]
