"""Connects to the API server, and awaits its answers: in rotation, and within limits."""

import os
from asyncio.sslproto import SSLProtocol
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Self

import aiohttp
from kubernetes.aio.client.api_client import ApiClient
from kubernetes.aio.client.configuration import Configuration
from kubernetes.aio.config import load_incluster_config, load_kube_config
from kubernetes.aio.dynamic import DynamicClient, Resource, Subresource

from workergroups_api.manifest import Kind
from workergroups_common.bounded_json import ExceededLimit, Limits, parse
from workergroups_common.path_segment import path_segment
from workergroups_common.rotation import Rotation
from workergroups_kube.errors import RefusedObject

# A read fails if nothing comes for this time. Nothing delays reads as admission delays writes.
_SILENT_SECONDS = 5.0
# Of several API servers, one may be gone without a word. Those that live accept a connection at once.
_CONNECT_SECONDS = 3.0
# Reads at once, and those of one namespace. Each needs a connection.
_READS = 16
_NAMESPACE_READS = 8
# Answers that are larger than this are read one after the other.
_LARGE = 128 * 2**10

# The buffer of each TLS connection. asyncio's own of 256 KiB take 50 MiB if 200 writes are under way.
SSLProtocol.max_size = 32 * 2**10


class _Safe:
    """Requests go to the object that is named, or nowhere."""

    def path(self, name: str | None = None, namespace: str | None = None) -> str:
        for segment in (name, namespace):
            if segment is not None:
                path_segment(segment)
        path: str = super().path(name, namespace)  # type: ignore[misc]
        return path


class _SafeResource(_Safe, Resource):  # type: ignore[misc]
    """A kind of objects, with safe paths."""


class _SafeSubresource(_Safe, Subresource):  # type: ignore[misc]
    """A subresource, such as the status, with safe paths."""


class Connection:
    """A connection that writes under one field manager. A request without an answer fails after `request_seconds`."""

    def __init__(self, api: ApiClient, field_manager: str, request_seconds: float) -> None:
        self._client = DynamicClient(api)
        self._field_manager = field_manager
        self._write_timeout = aiohttp.ClientTimeout(total=request_seconds, sock_connect=_CONNECT_SECONDS)
        self._read_timeout = aiohttp.ClientTimeout(
            total=request_seconds, sock_connect=_CONNECT_SECONDS, sock_read=_SILENT_SECONDS
        )
        self._resources: dict[tuple[Kind, str | None], Any] = {}
        self._reads = Rotation(_READS, _NAMESPACE_READS)
        self._large = Rotation(1, 1)

    @classmethod
    @asynccontextmanager
    async def connect(cls, field_manager: str, request_seconds: float) -> AsyncIterator[Self]:
        """Connect with the pod's service account, or else with the kubeconfig."""
        if "KUBERNETES_SERVICE_HOST" in os.environ:
            load_incluster_config()
        else:
            await load_kube_config()
        configuration = Configuration.get_default_copy()
        # No limit: each object that is followed holds a connection, and a hundred of them would block everything else.
        configuration.connection_pool_maxsize = 0
        async with cls.to(configuration, field_manager, request_seconds) as kube:
            yield kube

    @classmethod
    @asynccontextmanager
    async def to(cls, configuration: Configuration, field_manager: str, request_seconds: float) -> AsyncIterator[Self]:
        """Connect to the API server of a configuration."""
        # Otherwise each request would search the environment and .netrc for proxies and passwords, twice in a thread.
        configuration.client_session_kwargs = {"trust_env": False}
        async with ApiClient(configuration) as api:
            yield cls(api, field_manager, request_seconds)

    def _resource(self, kind: Kind, subresource: str | None = None) -> Any:
        key = (kind, subresource)
        if key not in self._resources:
            self._resources[key] = self._new_resource(kind, subresource)
        return self._resources[key]

    def _new_resource(self, kind: Kind, subresource: str | None) -> Any:
        resource = _SafeResource(
            prefix="apis" if kind.group else "api",
            group=kind.group,
            api_version=kind.version,
            kind=kind.kind,
            name=kind.plural,
            namespaced=kind.is_namespaced,
            client=self._client,
        )
        if subresource is None:
            return resource
        name = f"{kind.plural}/{subresource}"
        return _SafeSubresource(resource, kind=kind.kind, name=name, namespaced=kind.is_namespaced)

    async def _answer(
        self, owner: str | None, ask: Callable[[], Awaitable[aiohttp.ClientResponse | None]], limits: Limits
    ) -> tuple[Any, int]:
        """Return what the API server answers to a read, None if it has nothing, and the size of the answer.

        Small answers do not wait for large ones. A large answer that has to wait is dropped, and asked for again.
        """
        owner = owner or ""
        async with self._reads.slot(owner):
            answer = await ask()
            if answer is None:
                return None, 0
            beginning = bytearray()
            if await _is_all(answer, _LARGE, beginning):
                return _parsed(beginning, limits)
            if not self._large.is_full:
                async with self._large.slot(owner):
                    return await _rest(answer, beginning, limits)
            answer.close()
        async with self._large.slot(owner):
            answer = await ask()
            return (None, 0) if answer is None else await _rest(answer, bytearray(), limits)


async def _is_all(answer: aiohttp.ClientResponse, size: int, body: bytearray) -> bool:
    """Read on until the body has more bytes than this; return False then, and True at its end."""
    async for chunk in answer.content.iter_chunked(_LARGE // 2):
        body += chunk
        if len(body) > size:
            return False
    return True


async def _rest(answer: aiohttp.ClientResponse, body: bytearray, limits: Limits) -> tuple[Any, int]:
    """Return the answer, whose beginning has been read."""
    if not await _is_all(answer, limits.size, body):
        answer.close()
    return _parsed(body, limits)


def _parsed(body: bytearray, limits: Limits) -> tuple[Any, int]:
    try:
        return parse(bytes(body), limits), len(body)
    except ExceededLimit as error:
        raise RefusedObject(str(error), bytes(body)) from None


async def finish(answer: aiohttp.ClientResponse) -> None:
    """Wait for the end of an answer that is not needed: if it is cut off, it is unknown whether the write was done."""
    async for _ in answer.content.iter_chunked(_LARGE):
        pass
