"""How operator and agent talk to the API server: plain dicts, server-side apply, no discovery.

What the API server sends is read within limits, since users wrote most of it.
"""

import asyncio
import json
import os
import re
from asyncio.sslproto import SSLProtocol
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from copy import copy
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, Generic, Self, TypeVar, cast

import aiohttp
from kubernetes.aio.client.api_client import ApiClient
from kubernetes.aio.client.configuration import Configuration
from kubernetes.aio.client.rest import ApiException
from kubernetes.aio.config import load_incluster_config, load_kube_config
from kubernetes.aio.dynamic import DynamicClient
from kubernetes.aio.dynamic.exceptions import DynamicApiError, NotFoundError, api_exception
from kubernetes.aio.watch import Watch

from workergroups_api.manifest import Kind, Manifest, kind_of
from workergroups_api.safe_paths import SafeResource, SafeSubresource
from workergroups_common.bounded_json import ExceededLimit, Limits, RefusedJson, parse
from workergroups_common.path_segment import InvalidName
from workergroups_common.rotation import Rotation

# What a call raises if the API server refuses, cannot be reached, does not answer, or breaks off its answer.
API_ERRORS = (
    DynamicApiError,
    InvalidName,
    aiohttp.ClientError,
    json.JSONDecodeError,
    RefusedJson,
    OSError,
    TimeoutError,
)

# etcd takes custom resources of 1.5 MiB. These limits allow more than a user needs: those of fields explain better.
OBJECT_LIMITS = Limits(size=4 * 2**20, depth=400, values=100_000)
PAGE_OBJECTS = 50
PAGE_LIMITS = Limits(size=8 * 2**20, depth=400, values=200_000)
# By how much the next page is smaller than one that exceeds the limits, and by how much it is larger otherwise.
_SHRINK, _GROW = 4, 2
# Of how many lists the size of their first page is remembered, if it is smaller than usual.
_REMEMBERED = 1000
# A list of rows instead of the objects: their names, and what else `kubectl get` shows.
_TABLE = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
# A read fails if nothing comes for this time. Nothing delays reads as admission delays writes.
_SILENT_SECONDS = 5.0
# Reads at once, and those of one namespace. Each needs a connection.
_READS = 16
_NAMESPACE_READS = 8
# Answers that are larger than this are read one after the other.
_LARGE = 128 * 2**10
# What is made of objects that are larger than this is kept, for this many objects.
_KEPT_BYTES = 32 * 2**10
_KEPT_OBJECTS = 1000
# Only what identifies an object and its version, whatever else it has.
_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

# With a charset, the client sends the text as it is. Without one, it would encode the text as JSON again.
_APPLY = "application/apply-patch+yaml; charset=utf-8"
_MERGE = "application/merge-patch+json"
# Characters beyond ASCII, up to U+FFFF.
_BASIC_PLANE = re.compile("[\u0080-\uffff]")


Made = TypeVar("Made")

# The buffer of each TLS connection. asyncio's own of 256 KiB take 50 MiB if 200 writes are under way.
SSLProtocol.max_size = 32 * 2**10


def api_error_message(error: Exception) -> str:
    """Return the API server's own sentence, or what else is known of the failure."""
    if not isinstance(error, DynamicApiError):
        return str(error) or type(error).__name__
    try:
        message = error.summary()
    except (AttributeError, KeyError, ValueError, TypeError):
        message = None
    return str(message or f"{error.status} {error.reason}")


def is_refusal(error: Exception) -> bool:
    """Whether the request itself is wrong, so that the API server will refuse it again until something changes."""
    if isinstance(error, InvalidName):
        return True
    return isinstance(error, DynamicApiError) and error.status in (400, 403, 404, 405, 413, 422)


def invalid_fields(error: Exception) -> tuple[str, ...]:
    """Return the fields for which the API server has refused an object, such as `status.conditions`."""
    try:
        found = json.loads(error.body)["details"]["causes"] if isinstance(error, DynamicApiError) else ()
        return tuple(str(cause.get("field")) for cause in found)
    except (KeyError, TypeError, ValueError, AttributeError):
        return ()


def as_yaml(manifest: Mapping[str, Any]) -> str:
    """Return the manifest as JSON that is also YAML, since the API server reads applied manifests as YAML.

    YAML knows no pairs of surrogate escapes, so what lies beyond U+FFFF stands for itself; all else beyond ASCII is
    escaped, since some of it is a line break to YAML.
    """

    def escaped(match: re.Match[str]) -> str:
        code = ord(match[0])
        # Half a surrogate pair is no character, and no server accepts it.
        return f"\\u{0xFFFD if 0xD800 <= code <= 0xDFFF else code:04x}"

    return _BASIC_PLANE.sub(escaped, json.dumps(manifest, ensure_ascii=False).replace("\x7f", "\\u007f"))


# UID and resource version.
_Version = tuple[str, str]
# Kind, namespace and selectors.
_List = tuple[Kind, str, tuple[tuple[str, str], ...]]


def _version_of(body: Manifest | None) -> _Version | None:
    return None if body is None else (body["metadata"]["uid"], body["metadata"]["resourceVersion"])


class RefusedObject(RefusedJson):
    """An object exists, and exceeds a limit; `data` is its text, or its beginning if that is too long itself."""

    def __init__(self, message: str, data: bytes) -> None:
        super().__init__(message)
        self.data = data


@dataclass(frozen=True)
class Page(Generic[Made]):
    """A part of a list: what was made of its objects."""

    items: Sequence[Made] = ()
    # The names of the objects that exceed a limit by themselves.
    refused: Sequence[str] = ()


class Kube:
    """A connection that writes under one field manager. A request without an answer fails after `request_seconds`."""

    def __init__(self, api: ApiClient, field_manager: str, request_seconds: float) -> None:
        self._client = DynamicClient(api)
        self._field_manager = field_manager
        self._request_seconds = request_seconds
        self._read_timeout = aiohttp.ClientTimeout(total=request_seconds, sock_read=_SILENT_SECONDS)
        self._resources: dict[tuple[Kind, str | None], Any] = {}
        self._page_sizes: dict[_List, int] = {}
        self._reads = Rotation(_READS, _NAMESPACE_READS)
        self._large = Rotation(1, 1)
        # The version of each large object that was read last, and what was made of it; the latest used is the last.
        self._kept: OrderedDict[tuple[object, ...], tuple[_Version | None, Any]] = OrderedDict()
        # Each new one would load all certificates again, for a connection that it does not use.
        self._watch = Watch()

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
        resource = SafeResource(
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
        return SafeSubresource(resource, kind=kind.kind, name=name, namespaced=kind.is_namespaced)

    async def get(
        self,
        kind: Kind,
        namespace: str | None,
        name: str,
        *,
        subresource: str | None = None,
        limits: Limits = OBJECT_LIMITS,
    ) -> Manifest | None:
        """Return the object, None if it does not exist or its kind is not installed. Raises RefusedObject."""
        path = self._resource(kind, subresource).path(namespace=namespace, name=name)
        return (await self._get(namespace, path, limits))[0]

    async def get_made(
        self, kind: Kind, namespace: str, name: str, make: Callable[[Manifest | RefusedObject], Awaitable[Made]]
    ) -> Made | None:
        """Return what `make` makes of the object, or of the error if it exceeds a limit; None if it does not exist.

        Of a large object, each version is read and made once, so that its size costs nothing afterwards. What `make`
        returns must depend on nothing but the object.
        """
        key, path = (kind, namespace, name), self._resource(kind).path(namespace=namespace, name=name)
        version, made = self._kept.pop(key, (None, None))
        if version is None or await self._version(namespace, path) != version:
            found, version, size = await self._found(namespace, path)
            if found is None:
                return None
            made = await make(found)
            if size <= _KEPT_BYTES:
                return made
        self._keep(key, version, made)
        return cast(Made, made)

    def _keep(self, key: tuple[object, ...], version: _Version | None, made: object) -> None:
        self._kept[key] = version, made
        if len(self._kept) > _KEPT_OBJECTS:
            self._kept.popitem(last=False)

    async def _found(self, namespace: str, path: str) -> tuple[Manifest | RefusedObject | None, _Version | None, int]:
        """Return an object, or why it is not read, with its version and size."""
        try:
            body, size = await self._get(namespace, path, OBJECT_LIMITS)
            return body, _version_of(body), size
        except RefusedObject:
            version = await self._version(namespace, path)
        try:
            body, size = await self._get(namespace, path, OBJECT_LIMITS)
            return body, _version_of(body), size
        except RefusedObject as error:
            # If it has changed since its version was read, it has another version, and is read again the next time.
            return error, version, len(error.data)

    async def _get(self, namespace: str | None, path: str, limits: Limits) -> tuple[Manifest | None, int]:
        """Return the object and the size of its text."""
        return await self._answer(namespace, partial(self._read, path, "application/json"), limits)

    async def _version(self, namespace: str, path: str) -> _Version | None:
        """Return which object a path leads to, and in which version; None if to none, or if even that is too much."""
        try:
            return _version_of((await self._answer(namespace, partial(self._read, path, _METADATA), OBJECT_LIMITS))[0])
        except RefusedObject:
            return None  # `managedFields` are as deep as what was written.

    async def _read(self, path: str, accept: str) -> aiohttp.ClientResponse | None:
        """Return None if nothing exists. The dynamic client would format a traceback, which costs more than this."""
        api = self._client.client
        request = await api.param_serialize(
            "GET", path, header_params={"Accept": accept}, auth_settings=["BearerToken"]
        )
        answer = await api.call_api(*request, _request_timeout=self._read_timeout)
        if answer.status == HTTPStatus.NOT_FOUND:
            await _finish(answer.response)
            return None
        if answer.status >= HTTPStatus.BAD_REQUEST:
            await answer.read()
            try:
                api.response_deserialize(answer, {})
            except ApiException as error:
                raise api_exception(error) from None
        response: aiohttp.ClientResponse = answer.response
        return response

    async def pages(
        self, kind: Kind, namespace: str, make: Callable[[Manifest], Made], **selectors: str
    ) -> AsyncIterator[Page[Made]]:
        """Read a list page by page, and keep of each object only what `make` makes of it.

        What exceeds the limits of a page is read again in smaller pages. Of a large object in a page of its own, each
        version is read once. This needs no right but to list. `make` must depend on nothing but the object.
        """
        which = kind, namespace, tuple(selectors.items())
        limit = self._page_sizes.pop(which, PAGE_OBJECTS)
        next_time, more = limit * _GROW, ""
        while True:
            listing = {"namespace": namespace, "_continue": more or None, **selectors}
            try:
                if limit > 1:
                    (page, more, _), is_large = await self._page(kind, make, limit=limit, **listing), False
                else:
                    page, more, is_large = await self._one(which, make, listing)
            except RefusedObject:
                limit = next_time = max(1, limit // _SHRINK)
                continue
            yield page
            # A page of a large object and the next one would often be refused.
            next_time = limit if is_large else next_time
            if not more:
                break
            limit = limit if is_large else min(PAGE_OBJECTS, limit * _GROW)
        if next_time < PAGE_OBJECTS:
            if len(self._page_sizes) >= _REMEMBERED:
                self._page_sizes.clear()
            self._page_sizes[which] = next_time

    async def _page(self, kind: Kind, make: Callable[[Manifest], Made], **request: Any) -> tuple[Page[Made], str, int]:
        """Return a page of a list, the token of the next page, and the size of the answer."""
        listed, size = await self._listed(kind, PAGE_LIMITS, **request)
        return Page([make(each) for each in listed.get("items") or ()]), listed["metadata"].get("continue", ""), size

    async def _one(
        self, which: _List, make: Callable[[Manifest], Made], listing: Mapping[str, Any]
    ) -> tuple[Page[Made], str, bool]:
        """Return the next object of a list as a page, the token of the next page, and whether the object is large."""
        table = await self._table(which[0], listing)
        more, rows = table["metadata"].get("continue", ""), table.get("rows")
        if not rows:
            return Page(), more, False
        name, version = str(rows[0]["cells"][0]), _version_of(rows[0].get("object"))
        key = *which, name
        kept, page = self._kept.pop(key, (None, None))
        if kept is None or kept != version:
            # A token is about one version of the list. Without one, the first object may be another one by now.
            exactly = {"resourceVersion": table["metadata"]["resourceVersion"], "resourceVersionMatch": "Exact"}
            asked = {} if listing["_continue"] else {"query_params": list(exactly.items())}
            try:
                page, _, size = await self._page(which[0], make, limit=1, **asked, **listing)
            except RefusedObject as error:
                page, size = Page(refused=[name]), len(error.data)
            if size <= _KEPT_BYTES:
                return page, more, False
        self._keep(key, version, page)
        return cast(Page[Made], page), more, True

    async def _table(self, kind: Kind, listing: Mapping[str, Any]) -> Manifest:
        """Return the next object of a list as a table of one row, with its metadata if they are within the limits."""

        async def ask(include: str) -> Manifest:
            asked: Manifest = {"header_params": _TABLE, "query_params": [("includeObject", include)], "limit": 1}
            table: Manifest = (await self._listed(kind, PAGE_LIMITS, **asked, **listing))[0]
            return table

        try:
            return await ask("Metadata")
        except RefusedObject:
            return await ask("None")

    async def latest(
        self,
        kind: Kind,
        namespace: str,
        make: Callable[[Manifest], Made],
        moment: Callable[[Made], str],
        **selectors: str,
    ) -> Made | None:
        """Return what was made of the latest object of a list, None if the list is empty. Raises RefusedObject."""
        latest: Made | None = None
        async for page in self.pages(kind, namespace, make, **selectors):
            if page.refused:
                raise RefusedObject(f"{kind.kind} {page.refused[0]} exceeds what is read of an object", b"")
            latest = max((*page.items, *filter(None, [latest])), key=moment, default=None)
        return latest

    async def _listed(self, kind: Kind, limits: Limits, *, namespace: str, **request: Any) -> tuple[Any, int]:
        """Return the answer to a request for a list, and its size."""

        async def ask() -> aiohttp.ClientResponse:
            # The client adds to what it is given.
            given = {key: copy(value) for key, value in request.items()}
            answer: aiohttp.ClientResponse = await self._resource(kind).get(
                namespace=namespace, _request_timeout=self._read_timeout, serialize=False, **given
            )
            return answer

        return await self._answer(namespace, ask, limits)

    async def _answer(
        self, namespace: str | None, ask: Callable[[], Awaitable[aiohttp.ClientResponse | None]], limits: Limits
    ) -> tuple[Any, int]:
        """Return what the API server answers to a read, None if it has nothing, and the size of the answer.

        Small answers do not wait for large ones. A large answer that has to wait is dropped, and asked for again.
        """
        owner = namespace or ""
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

    async def apply(self, manifest: Manifest, subresource: str | None = None, *, dry_run: bool = False) -> None:
        """Apply on the server side; take over fields that another manager holds. A dry run only asks if that works."""
        await self._patch(manifest, as_yaml(manifest), _APPLY, subresource, dry_run=dry_run, force_conflicts=True)

    async def merge(self, patch: Manifest, subresource: str, *, dry_run: bool = False) -> None:
        """Set and, where the value is None, remove fields of a part of an object, also those that others own."""
        await self._patch(patch, patch, _MERGE, subresource, dry_run=dry_run)

    async def _patch(
        self,
        manifest: Manifest,
        body: str | Manifest,
        content_type: str,
        subresource: str | None,
        *,
        dry_run: bool,
        **more: Any,
    ) -> None:
        answer = await self._resource(kind_of(manifest), subresource).patch(
            body=body,
            content_type=content_type,
            name=manifest["metadata"]["name"],
            namespace=manifest["metadata"]["namespace"],
            field_manager=self._field_manager,
            _request_timeout=self._request_seconds,
            serialize=False,
            **more,
            **({"dry_run": "All"} if dry_run else {}),
        )
        await _finish(answer)

    async def create(self, manifest: Manifest, *, dry_run: bool = False) -> None:
        """Create an object, and raise ConflictError if there is one; a dry run only asks whether that would work.

        A dry run is strict: it also refuses fields that the kind does not have.
        """
        strictly = {"dry_run": "All", "query_params": [("fieldValidation", "Strict")]} if dry_run else {}
        answer = await self._resource(kind_of(manifest)).create(
            body=manifest,
            namespace=manifest["metadata"]["namespace"],
            field_manager=self._field_manager,
            _request_timeout=self._request_seconds,
            serialize=False,
            **strictly,
        )
        await _finish(answer)

    async def delete(self, manifest: Manifest, *, only_unchanged: bool = False) -> None:
        """Delete this object, but not another one that has its name by now. It may be gone already.

        With `only_unchanged`, raise ConflictError if the object has changed since it was read.
        """
        metadata = manifest["metadata"]
        must_match = ("uid", "resourceVersion") if only_unchanged else ("uid",)
        try:
            answer = await self._resource(kind_of(manifest)).delete(
                name=metadata["name"],
                namespace=metadata["namespace"],
                body={
                    "preconditions": {key: metadata[key] for key in must_match},
                    "propagationPolicy": "Background",
                },
                _request_timeout=self._request_seconds,
                serialize=False,
            )
        except NotFoundError:
            return
        await _finish(answer)

    async def follow(
        self, kind: Kind, namespace: str, name: str, resync_seconds: int
    ) -> AsyncGenerator[Manifest | None, None]:
        """Yield an object now and after each change, None while it does not exist; never ends.

        Reads the object again every `resync_seconds`, so that a watch that went silent costs no more than that.
        """
        resource = self._resource(kind)
        selector = f"metadata.name={name}"
        while True:
            listed, _ = await self._listed(kind, OBJECT_LIMITS, namespace=namespace, field_selector=selector)
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
                # The server ends the watch. This ends a connection that hangs, a little later.
                async with asyncio.timeout(resync_seconds + 1), aclosing(watch) as events:
                    async for event in events:
                        if event["type"] == "ERROR":
                            break
                        yield None if event["type"] == "DELETED" else event["raw_object"]
            except TimeoutError:
                continue


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


async def _finish(answer: aiohttp.ClientResponse) -> None:
    """Wait for the end of an answer that is not needed: if it is cut off, it is unknown whether the write was done."""
    async for _ in answer.content.iter_chunked(_LARGE):
        pass
