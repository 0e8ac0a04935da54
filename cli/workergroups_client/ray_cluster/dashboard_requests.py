"""The requests of browsers to a dashboard on this machine: let them in or not, and pass them on to Ray."""

from __future__ import annotations

import contextlib
import html
from email.message import Message
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import NamedTuple, Protocol

import urllib3

_PIECE = 1 << 16
_HOP_BY_HOP = {"connection", "keep-alive", "proxy-authenticate", "te", "trailer", "transfer-encoding", "upgrade"}
_KEPT_FROM_RAY = _HOP_BY_HOP | {"host", "cookie", "authorization", "x-ray-authorization", "content-length"}
_KEPT_FROM_BROWSERS = _HOP_BY_HOP | {"set-cookie", "server", "date"}
_WITHOUT_BODY = (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)


class Entrance(Protocol):
    """Decides who may pass."""

    @property
    def cookie(self) -> str:
        """The cookie of a browser that is logged in."""

    def logs_in(self, path: str) -> bool:
        """Return whether the path logs a browser in."""

    def knows(self, headers: Message[str, str], netloc: str) -> bool:
        """Return whether a request is from the browser that is logged in."""


class Site(NamedTuple):
    """What a server serves."""

    netloc: str
    """The only address that it serves."""
    door: Entrance
    page: str
    """The page of the dashboard that a login leads to."""
    upstream: urllib3.HTTPConnectionPool
    token: str


class DashboardRequests(BaseHTTPRequestHandler):
    """Handles the requests of one connection."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer a request, of whatever method."""
        site: Site = self.server.site  # type: ignore[attr-defined]
        # Another name may be one that a foreign page resolves to this machine.
        if self.headers.get("Host") != site.netloc or not self.path.startswith("/"):
            self._say(HTTPStatus.MISDIRECTED_REQUEST, "This server is for another address.")
        elif self.command == "GET" and site.door.logs_in(self.path):
            # A redirection would count as coming from the page with the link, and such requests have no cookie.
            self._say(HTTPStatus.OK, "Logged in.", refresh=f"0; url={site.page}", cookie=site.door.cookie)
        elif not site.door.knows(self.headers, site.netloc):
            self._say(HTTPStatus.FORBIDDEN, "The address works once, in one browser: run workergroups dashboard again.")
        else:
            self._pass_on(site)

    do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_GET

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def _pass_on(self, site: Site) -> None:
        length = self.headers.get("Content-Length", "0")
        if "Transfer-Encoding" in self.headers or not length.isdecimal():
            self._say(HTTPStatus.LENGTH_REQUIRED, "A request needs its length.")
            return
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _KEPT_FROM_RAY}
        try:
            answer = site.upstream.urlopen(
                self.command,
                self.path,
                body=self.rfile.read(int(length)) or None,
                headers={**headers, "Authorization": f"Bearer {site.token}"},
                redirect=False,
                preload_content=False,
                decode_content=False,
            )
        except (urllib3.exceptions.HTTPError, OSError):
            self._say(HTTPStatus.BAD_GATEWAY, "Ray's dashboard does not answer. Its head may be restarting: reload.")
            return
        with contextlib.closing(answer):
            self._answer(answer)
            answer.release_conn()

    def _answer(self, answer: urllib3.BaseHTTPResponse) -> None:
        has_end = "Content-Length" in answer.headers or self.command == "HEAD" or answer.status in _WITHOUT_BODY
        self.send_response(answer.status, answer.reason)
        for name, value in answer.headers.items():
            if name.lower() not in _KEPT_FROM_BROWSERS:
                self.send_header(name, value)
        if not has_end:
            self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        stays, self.close_connection = not self.close_connection, True  # if the answer is cut off
        for piece in answer.stream(_PIECE, decode_content=False):
            self.wfile.write(piece if has_end else b"%x\r\n%b\r\n" % (len(piece), piece))
        if not has_end:
            self.wfile.write(b"0\r\n\r\n")
        self.close_connection = not stays

    def _say(self, status: HTTPStatus, text: str, *, refresh: str | None = None, cookie: str | None = None) -> None:
        ahead = f'<meta http-equiv="refresh" content="{html.escape(refresh)}">' if refresh else ""
        body = f"<!DOCTYPE html><title>workergroups</title>{ahead}<p>{html.escape(text)}</p>\n".encode()
        headers = {
            "Content-Type": "text/html; charset=utf-8",
            "Content-Length": str(len(body)),
            "Cache-Control": "no-store",
            "Referrer-Policy": "no-referrer",
            "Connection": "close",
            **({"Set-Cookie": cookie} if cookie else {}),
        }
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(b"" if self.command == "HEAD" else body)
