"""A page of this machine that logs a browser in to Ray's dashboard, once.

Ray's own page asks for the token. Cookies belong to a host and not to a port, so another server on 127.0.0.1 can set
the one that Ray reads, as Ray's own server sets it. The address holds a secret that works once: other users of this
machine who find the port get nothing.
"""

from __future__ import annotations

import http.server
import secrets
import threading

from .connection import RayConnection
from .tunnel import LOOPBACK

_COOKIE = "ray-authentication-token"


class LoginPage:
    """Serves until it is closed.

    Args:
        ray: The connection whose dashboard is to be opened.
        page: Where in the dashboard to go.
    """

    def __init__(self, ray: RayConnection, page: str = "/") -> None:
        self._secret: str | None = secrets.token_urlsafe(16)
        self._server = http.server.HTTPServer((LOOPBACK, 0), self._handler(ray, page))
        self.url = f"http://{LOOPBACK}:{self._server.server_port}/{self._secret}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Serve no longer."""
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> LoginPage:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _used(self, path: str) -> bool:
        """Whether it is the secret, which is none any more after that."""
        if self._secret is None or not secrets.compare_digest(path.encode(), f"/{self._secret}".encode()):
            return False
        self._secret = None
        return True

    def _handler(self, ray: RayConnection, page: str) -> type[http.server.BaseHTTPRequestHandler]:
        used = self._used

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if not used(self.path):
                    self.send_error(404)
                    return
                self.send_response(303)
                self.send_header("Set-Cookie", f"{_COOKIE}={ray.token}; Path=/; HttpOnly; SameSite=Strict")
                self.send_header("Location", f"{ray.url}{page}")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        return Handler
