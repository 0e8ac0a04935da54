"""What is wrong when the API server refuses a request, does not answer, or is none: each error says what to do."""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from workergroups_api.names import GROUP

from ..errors import (
    ClientError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    NotInstalledError,
    UnauthorizedError,
    UnreachableError,
)
from .unknown_fields import with_suggestions


class Place(NamedTuple):
    """Where a request went."""

    server: str
    context: str
    login: str
    """How to log in again."""

    def __str__(self) -> str:
        return f"the API server at {self.server} (context {self.context})"


UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND, _CONFLICT = 401, 403, 404, 409
BUSY = (429, 502, 503, 504)
_NO_SUCH_PATH = b"404 page not found"
_FORBIDDEN_BY_ROLES = re.compile(
    r'User "(?P<user>[^"]*)" cannot (?P<verb>\S+) resource "(?P<resource>[^"]*)" in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<namespace>[^"]*)")?'
)
# With status 500, though the manifest is wrong: a field that the schema does not have, or a value of another type.
_UNTYPED = re.compile(
    r"failed to create typed patch object \([^;]*/(?P<name>[^;/]*); [^;]*, Kind=(?P<kind>\w+)\): (?P<fields>.*)",
    re.DOTALL,
)
# Follows a field's own error, and says nothing that helps.
_NOT_CHECKED = re.compile(r", <nil>: Invalid value: (null|\"null\"): some validation rules were not checked [^]]*")
_THROUGH_PROXY = re.compile(r"/api/v1/namespaces/(?P<namespace>[^/]+)/services/(?P<service>[^/]+)/proxy/")
_ANONYMOUS = "system:anonymous"
_SERVICE_ACCOUNT = "system:serviceaccount:"
_READING = ("get", "list", "watch")
_FOR_EDITORS = ("secrets", "pods/exec", "pods/portforward", "services/proxy")
_INSTALLED_BY = {GROUP: "the chart of WorkerGroups (helm upgrade --install workergroups ...)", "ray.io": "KubeRay"}
_LONGEST = 300


def refusal(
    place: Place, status: int, body: bytes, method: str = "GET", path: str = "", location: str | None = None
) -> ClientError:
    """Return the error for an answer that is no success."""
    answer = _status(body)
    said = _NOT_CHECKED.sub("", str(answer.get("message") or _text_of(body) or f"status {status}"))
    if status == UNAUTHORIZED and (name := service(path, body)):
        return ClientError(
            f"Service {name} wants a login ({said}), and the API server passes none on: choose a Service without one"
        )
    if status == UNAUTHORIZED:
        return UnauthorizedError(f"{place} does not accept your login ({said}): {place.login}")
    if status == _FORBIDDEN:
        return ForbiddenError(f"{place} refused the request: {said}{_way_to_right(place, said)}")
    if status == _NOT_FOUND:
        return _absent(place, answer, body, path)
    if status == _CONFLICT:
        return ConflictError(said)
    if status in BUSY:
        return UnreachableError(
            f"{place} is too busy or not ready (status {status}): {said}. Try again in a minute; "
            f"kubectl get --raw '/readyz?verbose' says what it waits for"
        )
    if (wrong := _UNTYPED.match(said)) is not None:
        kind, name, fields = wrong.group("kind", "name", "fields")
        what = with_suggestions(kind, " ".join(fields.removeprefix("errors:").split()))
        return ClientError(
            f"{kind} {name}: {what}. Correct the manifest; kubectl explain {kind.lower()} --recursive lists its fields"
        )
    if location:
        return no_api_server(place, f"it redirects to {location}".encode())
    if status >= 500:
        failed = f"{place} failed (status {status}, {method} {path})"
        return UnreachableError(f"{failed}: {said}. Try again; its log says more")
    return ClientError(said if answer else f"{place} answered {status} to {method} {path}: {said}. {_CHECK_SERVER}")


_CHECK_SERVER = "Check the address (kubectl config view --minify), and whether a proxy or a login page is in between"


def no_api_server(place: Place, body: bytes) -> ClientError:
    """Return the error for an answer that no API server gives."""
    return ClientError(
        f"{place} does not answer as an API server does: {_text_of(body) or 'its answer is empty'}. {_CHECK_SERVER}"
    )


def wrong_answer(place: Place, wanted: str, answer: Any) -> ClientError:
    """Return the error for JSON that is not what was asked for."""
    kind = answer.get("kind") if isinstance(answer, dict) else type(answer).__name__
    return no_api_server(place, f"instead of a {wanted}, it sends {kind or 'another object'}".encode())


def service(path: str, body: bytes) -> str | None:
    """Return the Service that has refused a request; ``None`` if that was the API server, which sends a Status."""
    found = _THROUGH_PROXY.match(path)
    return None if found is None or _status(body) else f"{found['service']} in namespace {found['namespace']}"


@contextmanager
def explained(place: Place) -> Iterator[None]:
    """Explain why no answer comes."""
    import urllib3

    try:
        yield
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise unreachable(place, error) from error


def unreachable(place: Place, error: BaseException) -> UnreachableError:
    """Return the error for a server that does not answer, or not over TLS."""
    causes = list(_causes(error))
    tls = next((cause for cause in causes if isinstance(cause, ssl.SSLError)), None)
    if tls is not None:
        return UnreachableError(f"{place} cannot be trusted, or does not trust you: {_tls_reason(place, tls)}")
    reason = str(getattr(causes[0], "reason", None) or causes[0]) or type(causes[0]).__name__
    reason = reason.rpartition("] ")[2] if "Errno" in reason else reason
    return UnreachableError(
        f"{place} does not answer: {reason.rstrip('.)')}. Check that the cluster is up, that this machine reaches it "
        f"(VPN, proxy), and that the context is the right one: kubectl config get-contexts"
    )


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: list[BaseException | None] = []
    current: BaseException | None = error
    while current is not None and current not in seen:
        yield current
        seen.append(current)
        inner = getattr(current, "reason", None) or next(iter(current.args), None)
        current = inner if isinstance(inner, BaseException) else current.__cause__ or current.__context__


def _tls_reason(place: Place, error: ssl.SSLError) -> str:
    said = getattr(error, "verify_message", None) or error.reason or str(error)
    if isinstance(error, ssl.SSLCertVerificationError):
        if "expired" in said or "not yet valid" in said:
            return f"its certificate is not valid now ({said}): check this machine's clock, or renew the certificate"
        if "match" in said or "mismatch" in said:
            return f"its certificate is for another name ({said}): correct server or tls-server-name in the kubeconfig"
        return (
            f"its certificate is not from the authority in the kubeconfig ({said}): fetch a new kubeconfig, and check "
            f"whether a proxy is in between"
        )
    if said in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST"):
        return f"it does not speak TLS ({said}): correct server in the kubeconfig (http:// or another port)"
    return f"{said}: if it wants a certificate of yours, {place.login}"


def _absent(place: Place, answer: dict[str, Any], body: bytes, path: str) -> ClientError:
    """Return the error for an object, or for a whole kind, that does not exist."""
    details = answer.get("details")
    if isinstance(details, dict) and details.get("name"):
        way_out = (
            f": create it: kubectl create namespace {details['name']}" if details.get("kind") == "namespaces" else ""
        )
        return NotFoundError(f"{answer.get('message')}{way_out}")
    if not answer and not body.startswith(_NO_SUCH_PATH):
        return no_api_server(place, body)
    words = path.strip("/").split("/")
    group = words[1] if words[0] == "apis" and len(words) > 1 else "core"
    installed = _INSTALLED_BY.get(group, f"what defines {group}")
    return NotInstalledError(
        f"{place} does not know {path}: install {installed}, or choose another context (--context)"
    )


def _way_to_right(place: Place, said: str) -> str:
    """Return who can give the right that is missing, and how."""
    found = _FORBIDDEN_BY_ROLES.search(said)
    if found is None:
        return ""
    user, verb, resource, group, namespace = found.group("user", "verb", "resource", "group", "namespace")
    if user == _ANONYMOUS:
        return f". The kubeconfig gives no login: {place.login}"
    if group not in ("", GROUP):
        return f". Ask an administrator for the right to {verb} {resource} ({group})"
    role = "view" if verb in _READING and resource not in _FOR_EDITORS else "edit"
    to = f"--user={user}"
    if user.startswith(_SERVICE_ACCOUNT):
        to = f"--serviceaccount={user.removeprefix(_SERVICE_ACCOUNT)}"
    kind, where = ("rolebinding", f" --namespace={namespace}") if namespace else ("clusterrolebinding", "")
    own = f", to which the chart's ClusterRole workergroups-{role} adds the pools and groups" if group == GROUP else ""
    return (
        f". The role {role} gives this right{own}. Ask an administrator for: "
        f"kubectl create {kind} workergroups-{role} --clusterrole={role} {to}{where}"
    )


def _status(body: bytes) -> dict[str, Any]:
    """Return Kubernetes' own answer; an empty one if another server has answered."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return answer if isinstance(answer, dict) and answer.get("kind") == "Status" else {}


def _text_of(body: bytes) -> str:
    """Return the beginning of an answer on one line; of a page, its title."""
    text = body.decode(errors="replace")
    if "<" in text[:_LONGEST]:
        title = re.search(r"<title[^>]*>(.*?)</title", text, re.IGNORECASE | re.DOTALL)
        text = f"it sends a web page{f' ({title[1]})' if title else ''}"
    return " ".join(text.split())[:_LONGEST]
