"""The harness's own client of the API server: paths and JSON, nothing more.

It bypasses the proxy and is an administrator. It shares no code with `workergroups_kube`, which is under test here,
and it must send and read objects that the limits of that module refuse.
"""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any, Self

import aiohttp

from tests.simulation.control_plane import Access
from workergroups_api.manifest import Kind, Manifest, kind_of

NAMESPACE = Kind("v1", "Namespace", "namespaces")
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
# Of a request that the API server puts off.
TRIES = 10


class ApiError(Exception):
    """The API server rejected a request."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        self.message = message


def path_of(kind: Kind, namespace: str | None, name: str | None = None, subresource: str | None = None) -> str:
    """Return the URL's path of a kind's objects in a namespace, or of one of them."""
    root = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"
    within = f"/namespaces/{namespace}" if namespace else ""
    return "/".join([f"{root}{within}/{kind.plural}", *filter(None, (name, subresource))])


class Api:
    """The administrator's connection."""

    def __init__(self, access: Access, session: aiohttp.ClientSession) -> None:
        self._access = access
        self._session = session

    @classmethod
    @asynccontextmanager
    async def connect(cls, access: Access, user: str | None = None) -> AsyncIterator[Self]:
        """Connect within the context, with the rights of a user if one is named."""
        connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=access.certificate), limit=0)
        headers = {"Authorization": f"Bearer {access.tokens['admin']}"} | ({"Impersonate-User": user} if user else {})
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10)
        async with aiohttp.ClientSession(access.url, connector=connector, headers=headers, timeout=timeout) as session:
            yield cls(access, session)

    async def request(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json", **query: str
    ) -> Manifest:
        """Send a request; raise ApiError if it is rejected."""
        data = None if body is None else json.dumps(body).encode()
        result: Manifest = json.loads(await self._ask(method, path, data, query, {"Content-Type": content_type}))
        return result

    async def send(self, method: str, path: str, data: bytes, content_type: str = "application/json") -> None:
        """Send JSON text, and ignore the body of a successful answer; raise ApiError if it is rejected."""
        await self._ask(method, path, data, {}, {"Content-Type": content_type})

    async def text(self, path: str) -> str:
        """Return an answer as it is."""
        return await self._ask("GET", path, None, {}, {})

    async def table(self, kind: Kind, namespace: str) -> dict[str, dict[str, Any]]:
        """Return the columns of `kubectl get` for each object, by name; they contain nothing that users wrote."""
        headers = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
        found = json.loads(await self._ask("GET", path_of(kind, namespace), None, {"includeObject": "None"}, headers))
        columns = [column["name"] for column in found["columnDefinitions"]]
        return {row["cells"][0]: dict(zip(columns, row["cells"], strict=True)) for row in found["rows"] or ()}

    async def _ask(
        self, method: str, path: str, data: bytes | None, query: Mapping[str, str], headers: Mapping[str, str]
    ) -> str:
        for _ in range(TRIES):
            async with self._session.request(method, path, params=query, data=data, headers=headers) as answer:
                text = await answer.text()
            if answer.status != HTTPStatus.TOO_MANY_REQUESTS:
                break
            # As while the API server takes a changed definition over: every client tries again.
            await asyncio.sleep(float(answer.headers.get("Retry-After", 1)))
        if answer.status >= HTTPStatus.BAD_REQUEST:
            raise ApiError(answer.status, _message(text))
        return text

    async def get(self, kind: Kind, namespace: str | None, name: str) -> Manifest | None:
        """Return the object, None if it does not exist."""
        try:
            return await self.request("GET", path_of(kind, namespace, name))
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    async def list(self, kind: Kind, namespace: str, **query: str) -> list[Manifest]:
        """Return the objects of a namespace."""
        found = await self.request("GET", path_of(kind, namespace), **query)
        items: list[Manifest] = found["items"] or []
        return items

    async def create(self, manifest: Manifest) -> Manifest:
        """Create an object."""
        namespace = manifest["metadata"].get("namespace")
        return await self.request("POST", path_of(kind_of(manifest), namespace), manifest)

    async def create_text(self, kind: Kind, namespace: str, text: str) -> None:
        """Create an object that Python's json cannot read, from its text."""
        headers = {"Content-Type": "application/json"}
        async with self._session.post(path_of(kind, namespace), data=text, headers=headers) as answer:
            if answer.status >= 400:
                raise ApiError(answer.status, _message(await answer.text()))

    async def apply(self, manifest: Manifest, manager: str = "user", subresource: str | None = None) -> Manifest:
        """Server-side apply."""
        metadata = manifest["metadata"]
        path = path_of(kind_of(manifest), metadata.get("namespace"), metadata["name"], subresource)
        return await self.request("PATCH", path, manifest, APPLY, fieldManager=manager, force="true")

    async def merge(
        self, kind: Kind, namespace: str, name: str, patch: Mapping[str, Any], subresource: str | None = None
    ) -> Manifest:
        """Merge a patch, as a user's edit does."""
        return await self.request("PATCH", path_of(kind, namespace, name, subresource), patch, MERGE)

    async def delete(
        self, kind: Kind, namespace: str, name: str, *, grace: int | None = None, orphan: bool = False
    ) -> None:
        """Delete an object, which may be gone already."""
        query = {} if grace is None else {"gracePeriodSeconds": str(grace)}
        query["propagationPolicy"] = "Orphan" if orphan else "Background"
        try:
            await self.request("DELETE", path_of(kind, namespace, name), **query)
        except ApiError as error:
            if error.status != 404:
                raise

    async def create_namespace(self, name: str, labels: Mapping[str, str] | None = None) -> None:
        """Create a namespace, and wait until pods can be created in it."""
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": dict(labels or {})}}

        async def is_created() -> bool:
            try:
                await self.request("POST", "/api/v1/namespaces", body)
            except ApiError as error:
                if "being deleted" not in error.message:
                    raise
                return False
            return True

        # A worker of pytest may get tests of a file again whose namespace it has just deleted.
        await eventually(f"an earlier namespace {name} to end", is_created)
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name}}
        try:
            await self.create(account)
        except ApiError as error:
            if error.status != 409:
                raise

    async def delete_namespace(self, name: str) -> None:
        """Delete a namespace, without waiting for its end."""
        await self.request("DELETE", f"/api/v1/namespaces/{name}")

    async def token(self, namespace: str, service_account: str) -> str:
        """Return a service account's token, as kubelet would mount it."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{service_account}/token"
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        found = await self.request("POST", path, body)
        return str(found["status"]["token"])

    async def until_allowed(self, user: str, **asked: str) -> None:
        """Wait until a right that was granted to a user is in force."""
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        review = {"spec": {"user": user, "resourceAttributes": asked}}

        async def is_allowed() -> bool:
            return bool((await self.request("POST", path, review))["status"]["allowed"])

        await eventually(f"{user} may {asked}", is_allowed)

    async def watch(self, kind: Kind, namespace: str, name: str | None = None) -> AsyncIterator[tuple[str, Manifest]]:
        """Yield all objects of the namespace (and name) as ADDED, then each change; watch again when the watch ends."""
        path = path_of(kind, namespace)
        selector = {} if name is None else {"fieldSelector": f"metadata.name={name}"}
        known: dict[str, Manifest] = {}
        while True:
            listed = await self.request("GET", path, **selector)
            items = {item["metadata"]["uid"]: item for item in listed["items"] or []}
            for uid in known.keys() - items.keys():
                yield "DELETED", known.pop(uid)
            for uid, item in items.items():
                known[uid] = item
                yield "ADDED", {"apiVersion": kind.api_version, "kind": kind.kind} | item
            query = selector | {"watch": "true", "resourceVersion": listed["metadata"]["resourceVersion"]}
            async for type_, item in self._changes(path, query):
                if type_ == "DELETED":
                    known.pop(item["metadata"]["uid"], None)
                else:
                    known[item["metadata"]["uid"]] = item
                yield type_, item

    async def _changes(self, path: str, query: dict[str, str]) -> AsyncIterator[tuple[str, Manifest]]:
        async with self._session.get(path, params=query) as answer:
            async for line in lines(answer):
                event = json.loads(line)
                if event["type"] == "ERROR":
                    return
                yield event["type"], event["object"]


async def lines(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Yield the lines of an answer, each of which may have megabytes."""
    parts: list[bytes] = []
    async for chunk in answer.content.iter_any():
        for number, part in enumerate(chunk.split(b"\n")):
            if number:
                yield b"".join([*parts, b"\n"])
                parts.clear()
            parts.append(part)


def _message(text: str) -> str:
    try:
        return str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        return text[:500]


async def eventually(what: str, check: Any, seconds: float = 30.0, every: float = 0.05) -> Any:
    """Return the first true value of `check`, which may be a coroutine function and may raise AssertionError."""
    deadline = asyncio.get_running_loop().time() + seconds
    while True:
        failure: Exception | None = None
        try:
            found = check()
            found = await found if asyncio.iscoroutine(found) else found
            if found:
                return found
        except AssertionError as error:
            failure = error
        if asyncio.get_running_loop().time() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}") from failure
        await asyncio.sleep(every)
