"""Requests to the API server of a kubeconfig's context, and what its streams need to know."""

from __future__ import annotations

import json
import os
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

import urllib3

from ..errors import ClientError
from . import api_errors
from .credentials import Credential, login_of
from .kubeconfig import Context, unusable

if TYPE_CHECKING:
    from kubernetes.client import Configuration

REQUEST_SECONDS = 15
_PAUSES = (0.5, 1.0, 2.0)
"""How long to wait before a request is repeated because the API server is busy. Each of ours may be repeated."""
_LONGEST_PAUSE = 5.0
_NO_EXCEPTIONS = "none.invalid"
"""The name of no host, as the list of those to which a stream does not use the proxy."""


class _Asked(NamedTuple):
    """A request."""

    method: str
    path: str
    query: Mapping[str, str | None]
    headers: Mapping[str, str]
    data: bytes | None
    seconds: float | None = None
    """For how long the server may send nothing, if not for `REQUEST_SECONDS`."""
    is_stream: bool = False

    @property
    def target(self) -> str:
        """Path and query."""
        words = urlencode({name: value for name, value in self.query.items() if value})
        return f"{self.path}?{words}" if words else self.path


class Rest:
    """The API server, as the user of the context."""

    def __init__(self, context: Context) -> None:
        self._context, self.server = context, context.server
        self._login = login_of(context)
        self._proxy = _proxy_of(context)
        self._http: urllib3.PoolManager | None = None
        self._pair: tuple[str | None, str | None] = (None, None)
        self.place = api_errors.Place(self.server, context.name, self._login.again)

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str | None] | None = None,
        body: Any = None,
        content_type: str = "application/json",
        accept: str = "application/json",
        seconds: float | None = None,
    ) -> Any:
        """Return the answer, parsed as JSON. The server may take `REQUEST_SECONDS` for it, or these ``seconds``.

        Raises:
            ClientError: The API server refused the request, or is no API server; see `api_errors`.
            UnreachableError: It did not answer, or was too busy several times.
        """
        headers = {"Accept": accept} | ({"Content-Type": content_type} if body is not None else {})
        data = None if body is None else json.dumps(body).encode()
        answer = self._patiently(_Asked(method, path, query or {}, headers, data, seconds))
        return self._parsed(answer.data)

    def lines(self, path: str, *, query: Mapping[str, str | None], seconds: float) -> Iterator[Any]:
        """Yield the lines of an answer as they come, each parsed as JSON, until the server ends it.

        Args:
            path: The path.
            query: The query.
            seconds: For how long the server may send nothing.

        Raises:
            ClientError: As `request`, also if the connection is lost.
        """
        asked = _Asked("GET", path, query, {"Accept": "application/json"}, None, seconds, is_stream=True)
        with closing(self._patiently(asked)) as answer, api_errors.explained(self.place):
            yield from map(self._parsed, answer)

    def authorization(self) -> str | None:
        """Return the header of a request that is made otherwise."""
        return self._login.credential().authorization

    def renew(self) -> bool:
        """Forget the login that the API server did not accept; return whether there can be another one."""
        return self._login.renew()

    def configuration(self) -> Configuration:
        """Return what the kubernetes package needs for a stream.

        Raises:
            ClientError: The proxy is one of SOCKS, which the package would take for one of HTTP.
        """
        from kubernetes.client import Configuration

        if self._proxy is not None and self._proxy.startswith("socks"):
            raise ClientError(
                f"{self.place} is behind a SOCKS proxy: requests pass it, but no stream into a pod, which exec, logs, "
                f"connect and job need. Set proxy-url in the kubeconfig to an HTTP proxy; or forward a port to the API "
                f"server (ssh -L), and set server to that port, and tls-server-name to the server's name"
            )
        cluster, credential = self._context.cluster, self._login.credential()
        found = Configuration(host=self.server)
        found.verify_ssl = not cluster.flag("insecure-skip-tls-verify")
        found.ssl_ca_cert = cluster.file("certificate-authority")
        found.tls_server_name = cluster.text("tls-server-name")
        found.cert_file, found.key_file = credential.certificate, credential.key
        found.proxy, found.proxy_headers = self._proxy, _proxy_headers(self._proxy)
        # Whether to use the proxy is decided. Without a list, the package would read NO_PROXY once more.
        found.no_proxy = _NO_EXCEPTIONS
        return found

    def _parsed(self, text: bytes) -> Any:
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise api_errors.no_api_server(self.place, text) from error

    def _patiently(self, asked: _Asked) -> urllib3.BaseHTTPResponse:
        """Return the answer to a request that is repeated while the server is busy, and once after a new login."""
        answer = self._send(asked)
        is_refused = answer.status == api_errors.UNAUTHORIZED and not api_errors.service(asked.path, answer.data)
        if is_refused and self.renew():
            answer = self._send(asked)
        for pause in _PAUSES:
            if answer.status not in api_errors.BUSY:
                break
            wanted = answer.headers.get("Retry-After", "")
            time.sleep(min(float(wanted) if wanted.isdecimal() else pause, _LONGEST_PAUSE))
            answer = self._send(asked)
        if not _is_success(answer):
            location = answer.headers.get("Location")
            raise api_errors.refusal(self.place, answer.status, answer.data, asked.method, asked.path, location)
        return answer

    def _send(self, asked: _Asked) -> urllib3.BaseHTTPResponse:
        credential = self._login.credential()
        login = {"Authorization": credential.authorization} if credential.authorization else {}
        with api_errors.explained(self.place):
            answer = self._connected(credential).request(
                asked.method,
                self.server + asked.target,
                headers={**asked.headers, **login},
                body=asked.data,
                timeout=urllib3.Timeout(connect=REQUEST_SECONDS, read=asked.seconds or REQUEST_SECONDS),
                retries=False,
                preload_content=not asked.is_stream,
            )
            if asked.is_stream and not _is_success(answer):
                answer.read(cache_content=True)
            return answer

    def _connected(self, credential: Credential) -> urllib3.PoolManager:
        """Return the connections to the server, which are others for another certificate."""
        if self._http is None or self._pair != (credential.certificate, credential.key):
            self._pair = (credential.certificate, credential.key)
            self._http = self._connect()
        return self._http

    def _connect(self) -> urllib3.PoolManager:
        tls: dict[str, Any] = {}
        if self.server.startswith("https"):
            tls = {"ssl_context": self._tls(), "server_hostname": self._context.cluster.text("tls-server-name")}
        if self._proxy is None:
            return urllib3.PoolManager(**tls)
        if self._proxy.startswith("socks"):
            return _socks(self._proxy, tls)
        return urllib3.ProxyManager(self._proxy, proxy_headers=_proxy_headers(self._proxy), **tls)

    def _tls(self) -> ssl.SSLContext:
        cluster = self._context.cluster
        try:
            context = ssl.create_default_context(cafile=cluster.file("certificate-authority"))
            if all(self._pair):
                context.load_cert_chain(*self._pair)  # type: ignore[arg-type]
        except OSError as error:  # ssl.SSLError is one
            raise unusable(
                f"a certificate or a key of context {self._context.name} cannot be used ({error})"
            ) from error
        # From Python 3.13 on, this refuses certificates of many clusters, which kubectl accepts.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if cluster.flag("insecure-skip-tls-verify"):
            urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)  # the user has chosen so
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


def _is_success(answer: urllib3.BaseHTTPResponse) -> bool:
    return 200 <= answer.status < 300


def _proxy_of(context: Context) -> str | None:
    """Return the proxy of the cluster, or else that of the environment."""
    if proxy := context.cluster.text("proxy-url"):
        return proxy
    if not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    from requests.utils import get_environ_proxies, select_proxy

    found: str | None = select_proxy(context.server, get_environ_proxies(context.server))
    return found


def _proxy_headers(proxy: str | None) -> dict[str, str] | None:
    login = urllib3.util.parse_url(proxy).auth if proxy else None
    return dict(urllib3.util.make_headers(proxy_basic_auth=login)) if login else None


def _socks(proxy: str, tls: Mapping[str, Any]) -> urllib3.PoolManager:
    urllib3.disable_warnings(urllib3.exceptions.DependencyWarning)  # the error below says it
    try:
        from urllib3.contrib.socks import SOCKSProxyManager
    except ImportError as error:
        raise unusable(f"its proxy is {proxy}, for which Python lacks a package: pip install pysocks") from error
    return SOCKSProxyManager(proxy, **tls)
