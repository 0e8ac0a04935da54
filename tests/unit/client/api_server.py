"""A web server on this machine in the place of an API server, which answers what a test tells it."""

from __future__ import annotations

import json
import ssl
import subprocess
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import NamedTuple

API = "workergroups.dev/v1alpha1"
POOLS = f"/apis/{API}/namespaces/team/resourcepools"


class Answer(NamedTuple):
    body: object = b""
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()

    def body_bytes(self):
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


def listed(kind, *items):
    return Answer({"kind": f"{kind}List", "apiVersion": API, "items": list(items)})


def refused(code, message, **details):
    return Answer({"kind": "Status", "status": "Failure", "message": message, "code": code, "details": details}, code)


class QuietHandler(BaseHTTPRequestHandler):
    """Prints nothing."""

    def log_message(self, *_):
        pass


@contextmanager
def served(handler, tls=None):
    """A web server on a free port."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        if tls:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


class ApiServer:
    """Gives each path its answers in turn, and the last one again and again."""

    url = ""

    def __init__(self, default, answers):
        self.default = default
        self.answers = {path: list(told) if isinstance(told, list) else [told] for path, told in answers.items()}
        self.requests = []
        server = self

        class Handler(QuietHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                length = int(self.headers.get("Content-Length") or 0)
                server.requests.append((self.command, self.path, dict(self.headers), self.rfile.read(length)))
                answer = server.answer_to(self.path.partition("?")[0])
                body = answer.body_bytes()
                self.send_response(answer.status)
                headers = {"Content-Length": str(len(body)), **dict(answer.headers)}
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)
                self.close_connection = headers["Content-Length"] != str(len(body))

            do_GET = do_PATCH = do_DELETE = answer

        self.handler = Handler

    def answer_to(self, path):
        told = self.answers.get(path, [self.default])
        return told.pop(0) if len(told) > 1 else told[0]


@contextmanager
def api_server(default=Answer(b"404 page not found\n", 404), tls=None, answers=MappingProxyType({})):  # noqa: B008
    made = ApiServer(default, answers)
    with served(made.handler, tls) as server:
        made.url = f"http{'s' if tls else ''}://127.0.0.1:{server.server_port}"
        yield made


def kubeconfig(server, user=None, namespace="team", **cluster):
    """A kubeconfig with one context, ``lab``."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "jane", "user": user if user is not None else {"token": "t"}}],
        "contexts": [{"name": "lab", "context": {"cluster": "c", "user": "jane", "namespace": namespace}}],
        "current-context": "lab",
    }


class Pair(NamedTuple):
    """Files with a certificate and its key."""

    certificate: str
    key: str


class Authority:
    """Certificates for tests."""

    def __init__(self, folder):
        self._folder = folder
        self.own = self._pair("authority")
        extension = "basicConstraints=critical,CA:TRUE"
        self._request("authority", "-x509", "-addext", extension, "-out", self.own.certificate)

    def issue(self, name, *extensions, days=1):
        pair = self._pair(name)
        options = [word for each in ("basicConstraints=CA:FALSE", *extensions) for word in ("-addext", each)]
        self._request(name, *options, "-out", f"{pair.key}.csr")
        by = ("-CA", self.own.certificate, "-CAkey", self.own.key, "-CAcreateserial", "-copy_extensions", "copy")
        _openssl("x509", "-req", "-in", f"{pair.key}.csr", *by, "-days", str(days), "-out", pair.certificate)
        return pair

    def server_context(self, name="server", san="IP:127.0.0.1", *, ask_clients=False, is_old=False):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self.issue(name, f"subjectAltName={san}", days=-1 if is_old else 1))
        if ask_clients:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self.own.certificate)
        return context

    def _pair(self, name):
        return Pair(str(self._folder / f"{name}.crt"), str(self._folder / f"{name}.key"))

    def _request(self, name, *options):
        key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", self._pair(name).key)
        _openssl("req", "-new", "-subj", f"/CN={name}", *key, *options)


def _openssl(*words):
    subprocess.run(["openssl", *words], check=True, capture_output=True, timeout=60)
