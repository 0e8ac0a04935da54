"""An HTTP proxy in front of the API server that causes faults on request, and notes writes and missing rights.

Each client has its own port, so that the proxy knows who asks, and can cut all connections of a client that was ended.
Clients use plain HTTP; their tokens pass through.
"""

import asyncio
import contextlib
import json
import re
import ssl
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Self

import aiohttp
from aiohttp import web

from tests.simulation.api import lines
from tests.simulation.control_plane import Access
from tests.simulation.faults import (
    CALM,
    Close,
    Cut,
    CutBody,
    Delay,
    Faults,
    Gap,
    Late,
    Refuse,
    Repeat,
    Request,
    RequestFault,
    Rule,
    Say,
    Silence,
    Stale,
)
from tests.simulation.faults import GONE as GONE_REFUSAL
from tests.simulation.overload import Overload

# The API server's answer to a client that lacks a right; admission refuses in other words.
_LACKS_RIGHT = re.compile(r'is forbidden: user \\*"[^}]*', re.IGNORECASE)
_VERSION = re.compile(r"resourceVersion=\d+")
# An agent's Role names a group at about the same time as the plan. The operator has all rights from the beginning.
GRANT_SECONDS = 3.0
_HOP_BY_HOP = {"connection", "transfer-encoding", "content-length", "keep-alive", "host", "accept-encoding"}


@dataclass(frozen=True)
class Write:
    """A request that may have changed something, and how the API server answered."""

    at: float
    request: Request
    status: int


class CutOff(Exception):
    """The proxy ends the connection to the client."""


class Proxy:
    """Listens on loopback; `faults` decides what goes wrong."""

    def __init__(self, access: Access, session: aiohttp.ClientSession, faults: Faults) -> None:
        self._access = access
        self._session = session
        self.faults = faults
        self._clients: dict[int, str] = {}
        self._transports: dict[str, set[asyncio.BaseTransport]] = {}
        self._gaps: set[tuple[str, str]] = set()
        # The running watches by client and kind, and what ends them as too old.
        self._streams: dict[tuple[str, str, int], asyncio.Event] = {}
        self._earlier: dict[str, bytes] = {}
        self._calm = asyncio.Event()
        self._calm.set()
        self._runner = web.ServerRunner(web.Server(self._serve, handler_cancellation=True), shutdown_timeout=0.0)
        self.writes: list[Write] = []
        # What the API server said to requests for which a client lacks the right for longer than a grant takes.
        self._forbidden: dict[tuple[str, str, str], str] = {}
        self._refused_since: dict[tuple[str, str, str], float] = {}
        # When the proxy last delayed or rejected something.
        self.last_fault = 0.0
        self.overload = Overload()

    @classmethod
    @asynccontextmanager
    async def run(cls, access: Access, faults: Faults) -> AsyncIterator[Self]:
        """Listen within the context."""
        connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=access.certificate), limit=0)
        timeout = aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(
            access.url,
            connector=connector,
            timeout=timeout,
            auto_decompress=False,
            skip_auto_headers=("Accept-Encoding", "Accept", "Content-Type", "User-Agent"),
            read_bufsize=2**20,
        ) as session:
            proxy = cls(access, session, faults)
            await proxy._runner.setup()
            try:
                yield proxy
            finally:
                proxy.end_faults()
                for client in list(proxy._transports):
                    proxy.cut_off(client)
                await proxy._runner.cleanup()

    async def listen(self, client: str) -> str:
        """Return a new URL for a client."""
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        assert site._server is not None
        port = site._server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]
        self._clients[port] = client
        self._transports.setdefault(client, set())
        return f"http://127.0.0.1:{port}"

    def begin_faults(self, **weather: float) -> None:
        """Cause faults from now on, as often as the weather says."""
        self.faults.weather = type(CALM)(**weather)
        self._calm.clear()

    def end_faults(self) -> None:
        """Cause no more faults, and release what is delayed."""
        if self.faults.weather != CALM:
            self.last_fault = time.monotonic()
        self.faults.weather = CALM
        self.faults.rules.clear()
        self._calm.set()

    def rule(self, rule: Rule) -> Rule:
        """Cause a chosen fault, until the faults end."""
        self.faults.rules.append(rule)
        self._calm.clear()
        return rule

    @property
    def is_faulty(self) -> bool:
        """Whether faults may occur now."""
        return self.faults.weather != CALM

    def open_gap(self, client: str, plural: str) -> None:
        """Withhold the events of a kind until the gaps are closed; then the clients list again."""
        self._gaps.add((client, plural))

    def close_gaps(self) -> None:
        """End the gaps: the versions of these watches are too old."""
        gaps, self._gaps = self._gaps, set()
        for stale in [stream for stream in self._streams if stream[:2] in gaps]:
            self._streams[stale].set()

    def cut_off(self, client: str) -> None:
        """End all connections of a client, as the kernel does when its process dies."""
        for transport in list(self._transports.get(client, ())):
            if isinstance(transport, asyncio.Transport):
                transport.abort()

    @property
    def forbidden(self) -> list[str]:
        """The requests for which a client lacks the right: none that was granted, however late."""
        return list(self._forbidden.values())

    def writes_since(self, moment: float, leases: bool = False) -> list[Write]:
        """Return the writes since a time; renewals of Leases count only on request."""
        return [w for w in self.writes if w.at >= moment and (leases or w.request.plural != "leases")]

    def _note_right(self, incoming: web.BaseRequest, request: Request, status: int, content: bytes) -> None:
        what, now = (request.client, request.method, _VERSION.sub("", incoming.raw_path)), time.monotonic()
        found = _LACKS_RIGHT.search(content.decode(errors="replace")) if status == HTTPStatus.FORBIDDEN else None
        if found is None:
            self._refused_since.pop(what, None)
            self._forbidden.pop(what, None)
        elif request.client == "operator" or now - self._refused_since.setdefault(what, now) > GRANT_SECONDS:
            self._forbidden.setdefault(what, f"{request}: {found[0]}")

    async def _serve(self, incoming: web.BaseRequest) -> web.StreamResponse:
        transport = incoming.transport
        assert transport is not None
        client = self._clients[transport.get_extra_info("sockname")[1]]
        self._transports[client].add(transport)
        request = Request.parse(client, incoming.method, incoming.raw_path)
        try:
            if request.is_watch:
                return await self._watch(incoming, request)
            return await self._answer(incoming, request)
        except (CutOff, ConnectionError, aiohttp.ClientError):
            transport.abort()
            return web.Response(status=502)

    async def _pause(self, seconds: float) -> None:
        """Wait, at most until the faults end."""
        self.last_fault = time.monotonic()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._calm.wait()
        self.last_fault = time.monotonic()

    async def _answer(self, incoming: web.BaseRequest, request: Request) -> web.StreamResponse:
        body = await incoming.content.read()  # as large as the API server accepts
        fault = self.faults.of_request(request)
        if fault is not None:
            self.last_fault = time.monotonic()
        match fault:
            case Refuse() | Say():
                return _in_place(fault)
            case Cut(done=False):
                await self._pause(fault.after_seconds)
                raise CutOff
            case Delay():
                await self._pause(fault.seconds)
            case Stale() if incoming.raw_path in self._earlier:
                return web.Response(body=self._earlier[incoming.raw_path], content_type="application/json")
        asked = time.monotonic()
        async with self._forward(incoming, body) as answer:
            content = await answer.read()
            self.overload.note(time.monotonic() - asked)
            self._note_right(incoming, request, answer.status, content)
            if request.is_write:
                self.writes.append(Write(time.monotonic(), request, answer.status))
            if request.may_be_stale:
                self._earlier.setdefault(incoming.raw_path, content)
            await self._suffer(fault)
            headers = _passed_on(answer.headers.items())
            if isinstance(fault, CutBody):
                return await self._half(incoming, answer.status, headers, content)
            return web.Response(status=answer.status, headers=headers, body=content)

    async def _suffer(self, fault: RequestFault | None) -> None:
        """Wait, or break off, once the API server has answered."""
        match fault:
            case Cut():
                await self._pause(fault.after_seconds)
                raise CutOff
            case Late():
                await self._pause(fault.seconds)

    async def _half(self, incoming: web.BaseRequest, status: int, headers: Any, content: bytes) -> web.StreamResponse:
        response = web.StreamResponse(status=status, headers=headers)
        response.content_length = len(content)
        await response.prepare(incoming)
        await response.write(content[: len(content) // 2])
        raise CutOff

    def _forward(self, incoming: web.BaseRequest, body: bytes | None) -> Any:
        return self._session.request(
            incoming.method,
            incoming.raw_path,
            data=body or None,
            headers=_passed_on(incoming.headers.items()),
        )

    async def _watch(self, incoming: web.BaseRequest, request: Request) -> web.StreamResponse:
        fault = self.faults.of_request(request)
        if fault is not None:
            self.last_fault = time.monotonic()
        match fault:
            case Refuse(status=410):
                # The API server reports it within the stream of a watch.
                return web.Response(body=_expired(), content_type="application/json")
            case Refuse() | Say():
                return _in_place(fault)
            case Silence():
                await web.StreamResponse().prepare(incoming)
                await self._pause(fault.seconds)
                raise CutOff
            case Cut():
                raise CutOff
        async with self._forward(incoming, None) as answer:
            response = web.StreamResponse(status=answer.status, headers=_passed_on(answer.headers.items()))
            await response.prepare(incoming)
            content = b"" if answer.status == HTTPStatus.OK else await answer.read()
            self._note_right(incoming, request, answer.status, content)
            if content:
                await response.write(content)
            else:
                await self._until_stale(request, lines(answer), response)
            return response

    async def _until_stale(self, request: Request, lines: AsyncIterator[bytes], response: web.StreamResponse) -> None:
        """Pass events on; within a gap none, and after it the error that the version is too old."""
        key = request.client, request.plural, id(response)
        stale = self._streams[key] = asyncio.Event()
        streaming = asyncio.ensure_future(self._stream(self._outside_gaps(key, lines), response))
        ending = asyncio.ensure_future(stale.wait())
        try:
            await asyncio.wait((streaming, ending), return_when=asyncio.FIRST_COMPLETED)
            if streaming.done():
                streaming.result()
            else:
                await response.write(_expired())
        finally:
            del self._streams[key]
            for task in (streaming, ending):
                task.cancel()

    async def _outside_gaps(self, key: tuple[str, str, int], lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for line in lines:
            if key[:2] not in self._gaps:
                yield line

    async def _stream(self, lines: AsyncIterator[bytes], response: web.StreamResponse) -> None:
        async for line in lines:
            fault = self.faults.of_event()
            match fault:
                case Delay():
                    await self._pause(fault.seconds)
                case Gap():
                    await self._gap(lines, fault.seconds)
                    await response.write(_expired())
                    return
                case Say():
                    self.last_fault = time.monotonic()
                    await response.write(fault.body)
                    return
                case Silence():
                    await self._pause(fault.seconds)
                    raise CutOff
                case Close(in_line=in_line):
                    self.last_fault = time.monotonic()
                    if in_line:
                        await response.write(line[: len(line) // 2])
                    raise CutOff
                case Repeat():
                    await response.write(line)
            await response.write(line)

    async def _gap(self, lines: AsyncIterator[bytes], seconds: float) -> None:
        """Swallow events for a while, or until the faults end."""
        swallow = asyncio.ensure_future(_exhaust(lines))
        try:
            await self._pause(seconds)
        finally:
            swallow.cancel()
            with contextlib.suppress(asyncio.CancelledError, aiohttp.ClientError):
                await swallow


async def _exhaust(lines: AsyncIterator[bytes]) -> None:
    async for _ in lines:
        pass


def _expired() -> bytes:
    return json.dumps({"type": "ERROR", "object": json.loads(GONE_REFUSAL.body())}).encode() + b"\n"


def _in_place(fault: Refuse | Say) -> web.Response:
    """Return the answer of a fault, which replaces the API server's."""
    if isinstance(fault, Say):
        return web.Response(status=fault.status, body=fault.body, content_type=fault.content_type)
    headers = {"Retry-After": str(fault.retry_after)} if fault.retry_after else {}
    return web.Response(status=fault.status, body=fault.body(), headers=headers, content_type="application/json")


def _passed_on(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    return {name: value for name, value in headers if name.lower() not in _HOP_BY_HOP}
