"""kopf's connection to the API server, which passes on only answers that kopf can handle.

kopf retries when a connection fails, and lists again after a watch's `410 Gone`. Most other answers end one of its
watches, and with it the operator; kopf exits on a truncated response, for example. So this connection turns each other
answer into one of these two.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from functools import partial
from typing import Any, cast

import aiohttp
import kopf

from workergroups_operator import skeletons
from workergroups_operator.skeletons import PIECE_BYTES, UnexpectedAnswer
from workergroups_operator.watches import Skeleton, Watch, Watches

LOGGER = logging.getLogger(__name__)
_OK, _UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND = 200, 401, 403, 404
# What kopf gets for a list of a namespace that the operator may not serve: it is deleted, or its Role is.
_NOTHING = {"metadata": {"resourceVersion": "0"}, "items": []}
_DISCOVERY_KINDS = frozenset(("APIVersions", "APIGroupList", "APIResourceList"))
_CHANGES = frozenset(("ADDED", "MODIFIED", "DELETED"))


async def connect(watches: Watches, **arguments: Any) -> kopf.AiohttpSession:
    """Log in as the pod's service account, or by a kubeconfig."""
    info = await asyncio.to_thread(kopf.login_via_client, **arguments)
    assert info is not None, "the kubernetes package is installed"
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, ssl=info.as_ssl_context()),
        # A kilobyte that is compressed can hold a megabyte.
        headers={**info.as_http_headers(), "Accept-Encoding": "identity"},
        trust_env=info.trust_env,
        response_class=_Answer,
        middlewares=[partial(_ask, watches)],
    )
    return kopf.AiohttpSession(server=info.server, aiohttp_session=session, priority=info.priority)


class _Answer(aiohttp.ClientResponse):
    """An answer whose JSON this module reads before kopf asks for it; None if the API server refused."""

    document: Any = None

    async def json(self, **_: Any) -> Any:
        return self.document


async def _ask(
    watches: Watches, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """Send a request of kopf's. Raise ClientConnectionError if kopf must retry it."""
    path = request.url.path
    try:
        if _is_discovery(path):
            return await _discover(cast(_Answer, await handler(request)))
        watch, is_stream = watches.of(path), "watch" in request.url.query
        await watch.turn(is_stream=is_stream)
        answer = cast(_Answer, await handler(request))
        if answer.status == _UNAUTHORIZED:
            return answer  # kopf logs in again
        return _stream(answer, watch) if is_stream else await _list(answer, watch)
    except Exception as error:  # such as aiohttp's AssertionError if its session was closed meanwhile
        raise aiohttp.ClientConnectionError(f"{path}: {error!r:.500}") from error


def _is_discovery(path: str) -> bool:
    """Return whether the path is one of /api, /api/v1, /apis and /apis/GROUP/VERSION."""
    return path.count("/") <= (2 if path.startswith("/api/") else 3)


async def _discover(answer: _Answer) -> _Answer:
    """Read which kinds exist; kopf knows what to do if a group of kinds is gone."""
    if answer.status not in (_UNAUTHORIZED, _NOT_FOUND):
        _check_status(answer)
        try:
            answer.document = json.loads(await answer.read())
        except (ValueError, RecursionError) as error:
            raise UnexpectedAnswer(f"the answer is not JSON: {error}") from error
        if not isinstance(answer.document, dict) or answer.document.get("kind") not in _DISCOVERY_KINDS:
            raise UnexpectedAnswer("the answer does not list the kinds that exist")
    return answer


async def _list(answer: _Answer, watch: Watch) -> _Answer:
    """Read the skeletons of all objects of a kind."""
    path, was_refused = answer.url.path, watch.is_refused
    watch.is_refused = answer.status == _FORBIDDEN and "/namespaces/" in path
    if watch.is_refused and not was_refused:
        LOGGER.warning("%s: forbidden: nothing new in this namespace is served until it may be listed", path)
    if watch.is_refused and not watch.shows_any:
        # Until all lists have been read, kopf would serve no namespace.
        answer.close()
        answer.status, answer.document = _OK, _NOTHING
        return answer
    _check_status(answer)
    found = await skeletons.read(answer.content.iter_chunked(PIECE_BYTES), skeletons.LIST)
    if not isinstance(found, dict) or "resourceVersion" not in found.get("metadata", {}):
        raise UnexpectedAnswer("the answer is not a list of objects")
    found["items"] = [item for item in found.get("items", ()) if _is_named(item)]
    watch.listed(found["items"])
    answer.document = found
    return answer


def _check_status(answer: _Answer) -> None:
    if answer.status != _OK:
        answer.close()
        raise UnexpectedAnswer(f"the API server answers {answer.status} {answer.reason}")


def _is_named(skeleton: Any) -> bool:
    return "name" in skeleton.get("metadata", {})


def _stream(answer: _Answer, watch: Watch) -> _Answer:
    """Make kopf read skeletons of events. Whatever the API server answers, kopf sees a watch."""
    answer.content = _Events(answer, watch)  # type: ignore[assignment]  # aiohttp has no interface for it
    answer.status = _OK
    return answer


class _Events:
    """A watch's content, with events that kopf understands and nothing else."""

    def __init__(self, answer: _Answer, watch: Watch) -> None:
        self._answer, self._status, self._stream = answer, answer.status, answer.content
        self._watch = watch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def iter_chunked(self, _: int) -> AsyncIterator[bytes]:
        """Yield events, a line each; after anything else, tell kopf to list again."""
        try:
            for vanished in self._watch.vanished():
                yield _line("DELETED", vanished)
            async for event in self._read():
                yield _line(**event)
        except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, TimeoutError):
            raise  # kopf continues where it was
        except Exception as error:
            if not self._watch.is_refused:
                LOGGER.warning("%s: %r; listing again", self._answer.url.path, error)
            self._answer.close()
            yield _line("ERROR", {"code": 410})

    async def _read(self) -> AsyncIterator[Skeleton]:
        if self._status != _OK:
            raise UnexpectedAnswer(f"the API server answers {self._status} {self._answer.reason}")
        async for event in skeletons.read_lines(self._stream.iter_chunked(PIECE_BYTES), skeletons.EVENT):
            self._watch.note()
            match event:
                case {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": _}}}:
                    yield event
                case {"type": type_, "object": {"metadata": {"name": _}} as changed} if type_ in _CHANGES:
                    self._watch.happened(type_, changed)
                    yield event
                case _:
                    raise UnexpectedAnswer(f"this is not a change of an object: {event!r:.500}")


def _line(type: str, object: Skeleton) -> bytes:
    return json.dumps({"type": type, "object": object}).encode() + b"\n"
