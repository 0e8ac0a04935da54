"""Ray's HTTP interface on the dashboard port of the head: jobs, actors, logs."""

from __future__ import annotations

import contextlib
import json
import queue
import threading
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

import urllib3

from ..api_server.tunnel import Tunnel
from ..errors import ClientError, DeadlineError, NotFoundError, UnreachableError
from ..times import duration
from ..waiting import Tell, look_again

UP_SECONDS = 120
_SECONDS = 30
_SHOWN = 100
# The size of a piece of an answer, and how many of them may wait.
_PIECE, _PIECES = 1 << 16, 16
_JOIN_SECONDS = 0.1
# In Ray's refusal of a job for which it will have an agent later.
_NO_AGENT = "No available agent"


class RayApi:
    """A client of Ray's API behind a tunnel."""

    def __init__(self, tunnel: Tunnel, token: str) -> None:
        self._tunnel = tunnel
        self._headers = {"Authorization": f"Bearer {token}"}
        self._http = urllib3.PoolManager(headers=self._headers, retries=False)

    def wait_until_up(self, tell: Tell, seconds: float) -> None:
        """Wait for Ray's dashboard, which starts some seconds after the head.

        Raises:
            DeadlineError: The dashboard did not answer within ``seconds``.
        """
        for left in look_again(seconds):
            try:
                self._parsed(self._request("GET", "/api/version", timeout=min(left, _SECONDS)))
                return
            except UnreachableError as error:
                tell(f"waiting for Ray's dashboard ({duration(left)} left): {error}")
                last = error
        raise DeadlineError(f"Ray's dashboard did not answer within {duration(seconds)}: {last}")

    def get(self, path: str, **query: str | int) -> Any:
        """Return the answer, parsed as JSON."""
        return self._parsed(self._request("GET", f"{path}?{urlencode(query)}" if query else path))

    def ask(self, path: str) -> None:
        """Check that a resource exists, without reading it.

        Raises:
            NotFoundError: It does not exist.
        """
        self._request("GET", path)

    def post(self, path: str, body: object = None) -> Any:
        """Send JSON, and return the answer, parsed as JSON."""
        return self._parsed(self._request("POST", path, json=body))

    def put(self, path: str, data: bytes, seconds: float) -> None:
        """Upload a file."""
        self._request("PUT", path, body=data, timeout=seconds)

    def stream(self, path: str, **query: str | int) -> Iterator[bytes]:
        """Yield the answer in pieces until it ends."""
        with self._answer(path, query) as answer:
            yield from answer.stream(_PIECE)

    @contextlib.contextmanager
    def _answer(self, path: str, query: Mapping[str, str | int]) -> Iterator[urllib3.BaseHTTPResponse]:
        """Return an answer whose content has not been read. It may take any time."""
        url = f"{self._tunnel.url}{path}?{urlencode(query)}"
        with self._errors_explained():
            answer = self._http.request("GET", url, preload_content=False, timeout=urllib3.Timeout(connect=_SECONDS))
            try:
                if answer.status >= 400:
                    raise _refusal("GET", answer.status, answer.read().decode(errors="replace"))
                yield answer
            finally:
                answer.close()

    def follow(self, path: str, pause: float, **query: str | int) -> Iterator[bytes]:
        """Yield the answer in pieces until it ends, and nothing (``b""``) after each ``pause`` seconds without one."""
        pieces: queue.Queue[bytes | ClientError | None] = queue.Queue(_PIECES)
        with self._answer(path, query) as answer:
            reading = threading.Thread(target=self._pour, args=(answer, pieces), daemon=True)
            reading.start()
            try:
                while (piece := _next(pieces, pause)) is not None:
                    if isinstance(piece, ClientError):
                        raise piece
                    yield piece
            finally:
                with contextlib.suppress(ValueError):  # the connection has ended already
                    answer.shutdown()
                while reading.is_alive():
                    _next(pieces, _JOIN_SECONDS)

    def _pour(self, answer: urllib3.BaseHTTPResponse, pieces: queue.Queue[bytes | ClientError | None]) -> None:
        try:
            with self._errors_explained():
                for piece in answer.stream(_PIECE):
                    pieces.put(piece)
        except ClientError as error:
            pieces.put(error)
        else:
            pieces.put(None)

    def _request(self, method: str, path: str, *, timeout: float = _SECONDS, **options: Any) -> str:
        with self._errors_explained():
            answer = self._http.request(method, self._tunnel.url + path, timeout=timeout, **options)
        text = answer.data.decode(errors="replace")
        if answer.status >= 400:
            raise _refusal(method, answer.status, text)
        return text

    def _parsed(self, text: str) -> Any:
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ClientError(
                f"what answers on port {self._tunnel.remote_port} of pod {self._tunnel.pod} is not Ray's dashboard: "
                f"{text[:_SHOWN]!r}. Check the image of the pool, and the head's log: kubectl logs {self._tunnel.pod}"
            ) from error

    @contextlib.contextmanager
    def _errors_explained(self) -> Iterator[None]:
        try:
            yield
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise self._tunnel.trouble or UnreachableError(
                f"nothing answers on port {self._tunnel.remote_port} of pod {self._tunnel.pod} ({type(error).__name__})"
            ) from error


def _next(pieces: queue.Queue[bytes | ClientError | None], seconds: float) -> bytes | ClientError | None:
    try:
        return pieces.get(timeout=seconds)
    except queue.Empty:
        return b""


def _refusal(method: str, status: int, text: str) -> ClientError:
    # Ray's server answers with a traceback, whose last line says what is wrong. If another server has passed the answer
    # on, a line with a full stop follows.
    said = next((line for line in reversed(text.splitlines()) if line.strip(" .")), f"status {status}")
    if status >= 500 and (method == "GET" or _NO_AGENT in said):
        return UnreachableError(f"Ray cannot answer now: {said}")
    return NotFoundError(said) if status == 404 else ClientError(f"Ray refused the request: {said}")
