"""Ray's dashboard for one browser of this machine, which never gets Ray's token.

Browsers send cookies to every port of a host. So a cookie with the token would reach any web server that someone starts
on this machine. Instead, a proxy here adds the token to the requests that it passes on. It has a random host name of
its own, which browsers resolve to this machine. The address that the user opens has a secret that works once, and
gets the browser a cookie for that name. Requests without the cookie, for another name or from pages of other sites are
refused.
"""

from __future__ import annotations

import errno
import hmac
import http.cookies
import secrets
import socket
import threading
from email.message import Message
from http.server import ThreadingHTTPServer

import urllib3

from ..api_server.tunnel import LOOPBACK
from ..errors import ClientError
from .connection import RayConnection
from .dashboard_requests import DashboardRequests, Site

_COOKIE = "workergroups"
_OWN_PAGES = (None, "none", "same-origin")
_SECONDS = urllib3.Timeout(connect=30, read=None)
_TRIES = 10


class Door:
    """Who may pass: the browser that has opened the address with the secret, with pages from here."""

    def __init__(self) -> None:
        self.name = f"{secrets.token_hex(16)}.localhost"
        self._secret: str | None = secrets.token_urlsafe(32)
        self._session = secrets.token_urlsafe(32)
        self._lock = threading.Lock()

    @property
    def path(self) -> str:
        """The path that logs a browser in, once."""
        return f"/{self._secret}"

    @property
    def cookie(self) -> str:
        """The cookie of a browser that is logged in."""
        return f"{_COOKIE}={self._session}; Path=/; HttpOnly; SameSite=Strict"

    def logs_in(self, path: str) -> bool:
        """Return whether the path has the secret, and invalidate the secret if it has."""
        with self._lock:
            if self._secret is None or not hmac.compare_digest(path.encode(), self.path.encode()):
                return False
            self._secret = None
            return True

    def knows(self, headers: Message[str, str], netloc: str) -> bool:
        """Return whether a request is from a page of this server, in the browser that is logged in."""
        if headers.get("Origin") not in (None, f"http://{netloc}") or headers.get("Sec-Fetch-Site") not in _OWN_PAGES:
            return False
        try:
            found = http.cookies.SimpleCookie(headers.get("Cookie", "")).get(_COOKIE)
        except http.cookies.CookieError:
            return False
        return found is not None and hmac.compare_digest(found.value.encode(), self._session.encode())


class Dashboard:
    """Serves Ray's dashboard until it is closed.

    Args:
        ray: The connection to the dashboard.
        page: The page of the dashboard to open.
        port: A port of this machine; 0 for a free one.
    """

    def __init__(self, ray: RayConnection, page: str = "/", port: int = 0) -> None:
        door = Door()
        self._servers = _listen(port)
        netloc = f"{door.name}:{self._servers[0].server_port}"
        self.url = f"http://{netloc}"
        """The address of the dashboard, for a browser that is logged in."""
        self.login_url = f"{self.url}{door.path}"
        """The address that logs a browser in, once."""
        upstream = urllib3.connection_from_url(ray.url, maxsize=8, retries=False, timeout=_SECONDS)
        for server in self._servers:
            server.site = Site(netloc, door, page, upstream, ray.token)
            threading.Thread(target=server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Stop the servers."""
        for server in self._servers:
            server.shutdown()
            server.server_close()

    def __enter__(self) -> Dashboard:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Server(ThreadingHTTPServer):
    site: Site

    def handle_error(self, *_: object) -> None:
        """Print nothing: a browser may hang up at any time."""


class _Server6(_Server):
    address_family = socket.AF_INET6


def _listen(port: int) -> list[_Server]:
    """Return servers on both loopback addresses: a browser may try either, and no other program may have the other."""
    try:
        for _ in range(1 if port else _TRIES):
            first = _Server((LOOPBACK, port), DashboardRequests)
            try:
                return [first, _Server6(("::1", first.server_port), DashboardRequests)]
            except OSError as error:
                if error.errno != errno.EADDRINUSE:  # this machine has no IPv6
                    return [first]
                first.server_close()
        raise OSError(errno.EADDRINUSE, "another program uses it on ::1")
    except OSError as error:
        raise ClientError(f"port {port} of this machine cannot be used ({error.strerror}): choose another") from error
