"""Reads within limits: objects, of a large one each version once; lists, page by page; an object after each change."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from copy import copy
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, Generic, TypeVar, cast

import aiohttp
from kubernetes.aio.client.api_client import ApiClient
from kubernetes.aio.client.rest import ApiException
from kubernetes.aio.dynamic.exceptions import api_exception
from kubernetes.aio.watch import Watch

from workergroups_api.manifest import Kind, Manifest
from workergroups_common.bounded_json import Limits
from workergroups_kube.connection import Connection, finish
from workergroups_kube.errors import RefusedObject

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
# What is made of objects that are larger than this is kept, for this many objects.
_KEPT_BYTES = 32 * 2**10
_KEPT_OBJECTS = 1000
# Only what identifies an object and its version, whatever else it has.
_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

Made = TypeVar("Made")
# UID and resource version.
_Version = tuple[str, str]
# Kind, namespace and selectors.
_List = tuple[Kind, str, tuple[tuple[str, str], ...]]


def _version_of(body: Manifest | None) -> _Version | None:
    return None if body is None else (body["metadata"]["uid"], body["metadata"]["resourceVersion"])


@dataclass(frozen=True)
class Page(Generic[Made]):
    """A part of a list: what was made of its objects."""

    items: Sequence[Made] = ()
    # The names of the objects that exceed a limit by themselves.
    refused: Sequence[str] = ()


class Reader(Connection):
    """A connection that reads."""

    def __init__(self, api: ApiClient, field_manager: str, request_seconds: float) -> None:
        super().__init__(api, field_manager, request_seconds)
        self._page_sizes: dict[_List, int] = {}
        # The version of each large object that was read last, and what was made of it; the latest used is the last.
        self._kept: OrderedDict[tuple[object, ...], tuple[_Version | None, Any]] = OrderedDict()
        # Each new one would load all certificates again, for a connection that it does not use.
        self._watch = Watch()

    async def get(
        self,
        kind: Kind,
        namespace: str | None,
        name: str,
        *,
        subresource: str | None = None,
        limits: Limits = OBJECT_LIMITS,
        on_behalf_of: str | None = None,
    ) -> Manifest | None:
        """Return the object, None if it does not exist or its kind is not installed. Raises RefusedObject.

        `on_behalf_of`: whose turn the read takes; by default, that of the object's namespace.
        """
        path = self._resource(kind, subresource).path(namespace=namespace, name=name)
        return (await self._get(on_behalf_of or namespace, path, limits))[0]

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

    async def _get(self, owner: str | None, path: str, limits: Limits) -> tuple[Manifest | None, int]:
        """Return the object and the size of its text."""
        return await self._answer(owner, partial(self._read, path, "application/json"), limits)

    async def is_installed(self, kind: Kind) -> bool:
        """Return whether the API server serves the group of a kind. Everybody may ask that."""
        return (await self._get(None, f"/apis/{kind.api_version}", OBJECT_LIMITS))[0] is not None

    async def latest_version(self, kind: Kind, namespace: str, name: str) -> tuple[str, str] | None:
        """Return the UID and the version of an object; None if it does not exist. Raises RefusedObject."""
        return await self._latest_version(namespace, self._resource(kind).path(namespace=namespace, name=name))

    async def _latest_version(self, namespace: str, path: str) -> _Version | None:
        return _version_of((await self._answer(namespace, partial(self._read, path, _METADATA), OBJECT_LIMITS))[0])

    async def _version(self, namespace: str, path: str) -> _Version | None:
        """Return which object a path leads to, and in which version; None if to none, or if even that is too much."""
        try:
            return await self._latest_version(namespace, path)
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
            await finish(answer.response)
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
