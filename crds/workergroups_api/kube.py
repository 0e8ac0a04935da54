"""How operator and agent talk to the API server: plain dicts, server-side apply, no discovery."""

import asyncio
import json
import os
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from copy import copy
from typing import Any, Self

import aiohttp
from kubernetes.aio.client.api_client import ApiClient
from kubernetes.aio.client.configuration import Configuration
from kubernetes.aio.config import load_incluster_config, load_kube_config
from kubernetes.aio.dynamic import DynamicClient, Resource, Subresource
from kubernetes.aio.dynamic.exceptions import DynamicApiError, NotFoundError
from kubernetes.aio.watch import Watch

from workergroups_api.manifest import Kind, Manifest, kind_of

REQUEST_TIMEOUT_SECONDS = 15
# What a call raises when the API server refuses, cannot be reached, does not answer, or is cut off in the middle.
API_ERRORS = (DynamicApiError, aiohttp.ClientError, json.JSONDecodeError, OSError, TimeoutError)

# With a charset, the client sends the text as it is; without, it would make JSON of it again.
_APPLY = "application/apply-patch+yaml; charset=utf-8"
# Beyond ASCII, up to U+FFFF.
_BASIC_PLANE = re.compile("[\u0080-\uffff]")


def api_error_message(error: Exception) -> str:
    """The API server's own sentence, or what else is known of the failure."""
    if not isinstance(error, DynamicApiError):
        return str(error) or type(error).__name__
    try:
        message = error.summary()
    except (AttributeError, KeyError, ValueError, TypeError):
        message = None
    return str(message or f"{error.status} {error.reason}")


def is_refusal(error: Exception) -> bool:
    """Whether the API server will say the same again until something else changes: the request itself is wrong."""
    return isinstance(error, DynamicApiError) and error.status in (400, 403, 404, 405, 413, 422)


def as_yaml(manifest: Mapping[str, Any]) -> str:
    """The manifest as JSON that is YAML too, which is how the API server reads what is applied.

    YAML knows no pairs of surrogate escapes, so what lies beyond U+FFFF stands for itself; all else beyond ASCII is
    escaped, since some of it is a line break to YAML.
    """

    def escaped(match: re.Match[str]) -> str:
        code = ord(match[0])
        # Half a surrogate pair is no character: no server takes it.
        return f"\\u{0xFFFD if 0xD800 <= code <= 0xDFFF else code:04x}"

    return _BASIC_PLANE.sub(escaped, json.dumps(manifest, ensure_ascii=False).replace("\x7f", "\\u007f"))


class Kube:
    """A connection that writes under one field manager."""

    def __init__(self, api: ApiClient, field_manager: str) -> None:
        self._client = DynamicClient(api)
        self._field_manager = field_manager
        # Each new one would load all certificates again, for a connection that it does not use.
        self._watch = Watch()

    @classmethod
    @asynccontextmanager
    async def connect(cls, field_manager: str) -> AsyncIterator[Self]:
        """By the pod's service account, or else by kubeconfig."""
        if "KUBERNETES_SERVICE_HOST" in os.environ:
            load_incluster_config()
        else:
            await load_kube_config()
        configuration = Configuration.get_default_copy()
        # Without a limit: each object that is followed holds a connection, and a hundred would keep out all else.
        configuration.connection_pool_maxsize = 0
        async with ApiClient(configuration) as api:
            yield cls(api, field_manager)

    def _resource(self, kind: Kind, subresource: str | None = None) -> Any:
        resource = Resource(
            prefix="apis" if kind.group else "api",
            group=kind.group,
            api_version=kind.version,
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

    async def apply(self, manifest: Manifest, subresource: str | None = None, *, dry_run: bool = False) -> Manifest:
        """Server-side apply; takes over fields that another manager holds. A dry run only asks whether that works."""
        applied = await self._resource(kind_of(manifest), subresource).patch(
            body=as_yaml(manifest),
            content_type=_APPLY,
            name=manifest["metadata"]["name"],
            namespace=manifest["metadata"]["namespace"],
            field_manager=self._field_manager,
            force_conflicts=True,
            _request_timeout=REQUEST_TIMEOUT_SECONDS,
            **({"dry_run": "All"} if dry_run else {}),
        )
        return dict(applied.to_dict())

    async def create(self, manifest: Manifest, *, dry_run: bool = False) -> None:
        """Create an object that nobody changes later, such as an event; a dry run only asks whether that would work.

        A dry run is strict: it also refuses fields that the kind does not have.
        """
        strictly = {"dry_run": "All", "query_params": [("fieldValidation", "Strict")]} if dry_run else {}
        await self._resource(kind_of(manifest)).create(
            body=manifest,
            namespace=manifest["metadata"]["namespace"],
            field_manager=self._field_manager,
            _request_timeout=REQUEST_TIMEOUT_SECONDS,
            **strictly,
        )

    async def delete(self, manifest: Manifest) -> None:
        """Delete this very object, not another one that has its name by now; fine if it is gone."""
        metadata = manifest["metadata"]
        try:
            await self._resource(kind_of(manifest)).delete(
                name=metadata["name"],
                namespace=metadata["namespace"],
                body={"preconditions": {"uid": metadata["uid"]}, "propagationPolicy": "Background"},
                _request_timeout=REQUEST_TIMEOUT_SECONDS,
            )
        except NotFoundError:
            return

    async def follow(
        self, kind: Kind, namespace: str, name: str, resync_seconds: int
    ) -> AsyncGenerator[Manifest | None, None]:
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
                watcher=copy(self._watch),
            )
            try:
                # The server ends the watch; a connection that hangs is ended here, a little later.
                async with asyncio.timeout(resync_seconds + 1), aclosing(watch) as events:
                    async for event in events:
                        if event["type"] == "ERROR":
                            break
                        yield None if event["type"] == "DELETED" else event["raw_object"]
            except TimeoutError:
                continue
