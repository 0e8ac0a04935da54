"""A page on this machine that logs a browser in to Ray's dashboard, once.

Ray's own page asks for the token. Cookies belong to a host and not to a port, so this server on 127.0.0.1 can set the
cookie that Ray reads, just as Ray's own server does. The address contains a secret that works once, so other users of
this machine who find the port cannot log in.
"""

from __future__ import annotations

import http.server
import secrets
import threading

from .connection import RayConnection
from .tunnel import LOOPBACK

_COOKIE = "ray-authentication-token"


class LoginPage:
    """Serves the page until it is closed.

    Args:
        ray: The connection to the dashboard.
        page: The page of the dashboard to open.
    """

    def __init__(self, ray: RayConnection, page: str = "/") -> None:
        self._secret: str | None = secrets.token_urlsafe(16)
        self._server = http.server.HTTPServer((LOOPBACK, 0), self._handler(ray, page))
        self.url = f"http://{LOOPBACK}:{self._server.server_port}/{self._secret}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Stop the server."""
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> LoginPage:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _used(self, path: str) -> bool:
        """Return whether the path is the secret, and invalidate the secret if it is."""
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
