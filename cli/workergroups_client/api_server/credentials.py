"""How a user of a kubeconfig logs in: a token, a password, a certificate, or what a plugin prints."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from base64 import b64encode
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import ClientError
from ..times import moment
from .kubeconfig import Context, Entry, as_file, unusable

_FRACTION = re.compile(r"\.\d+")
"""Of a second: Python 3.10 does not read nine digits of it."""
_EARLY = timedelta(seconds=30)
"""How long before its end a credential counts as expired: the clocks of two machines differ."""
_LOGINS = {
    "gke-gcloud-auth-plugin": "gcloud auth login",
    "aws": "aws sso login",
    "aws-iam-authenticator": "aws sso login",
    "kubelogin": "az login",
    "tsh": "tsh login",
}


class Credential(NamedTuple):
    """What a request carries."""

    authorization: str | None = None
    """The header."""
    certificate: str | None = None
    """A file, and one with its key."""
    key: str | None = None


class Login:
    """A user whose token, password or certificate is in the kubeconfig, or in a file that it names."""

    again = "ask the cluster's administrator for a new kubeconfig or token"
    """What to do if the API server does not accept the login."""

    def __init__(self, user: Entry) -> None:
        self._user = user

    def credential(self) -> Credential:
        """Return a valid credential. A token in a file is read each time, since Kubernetes replaces it."""
        return Credential(self._authorization(), self._user.file("client-certificate"), self._user.file("client-key"))

    def renew(self) -> bool:
        """Forget the credential that the API server did not accept; return whether there can be another one."""
        return False

    def _authorization(self) -> str | None:
        path = self._user.path("tokenFile")
        if token := _read(path) if path else self._user.text("token"):
            return _bearer(token, self._user.what)
        if name := self._user.text("username"):
            both = f"{name}:{self._user.text('password') or ''}"
            return f"Basic {b64encode(both.encode()).decode()}"
        return None


class PluginLogin(Login):
    """A user for whom a program prints the credential, such as the login of a cloud."""

    def __init__(self, user: Entry, cluster: Entry) -> None:
        super().__init__(user)
        fields = user.mapping("exec") or {}
        self._exec = Entry(f"exec of {user.what}", fields, user.folder)
        self._cluster = cluster
        self._lock = threading.Lock()
        self._known: tuple[Credential, datetime | None] | None = None
        self._command = self._exec.text("command") or ""
        if not self._command:
            raise unusable(f"{self._exec.what} names no command")
        login = _LOGINS.get(Path(self._command).name)
        self.again = (
            f"log in again with the tool of your cluster ({login or f'it is {self._command} that logs you in'})"
        )

    def credential(self) -> Credential:
        """Return the credential that the program printed last, or a new one if that has expired.

        If it has no certificate, that of the kubeconfig is added.
        """
        with self._lock:
            if self._known is None or _has_expired(self._known[1]):
                self._known = self._run()
            printed = self._known[0]
        return printed if printed.certificate else super().credential()._replace(authorization=printed.authorization)

    def renew(self) -> bool:
        """Forget the credential that the API server did not accept, so that the program runs again."""
        with self._lock:
            self._known = None
        return True

    def _run(self) -> tuple[Credential, datetime | None]:
        # A program that asks something needs the terminal. What it prints elsewhere is part of the error.
        is_attended = sys.stdin is not None and sys.stdin.isatty() and self._exec.text("interactiveMode") != "Never"
        try:
            done = subprocess.run(
                self._words(),
                env={**os.environ, **self._variables(), "KUBERNETES_EXEC_INFO": json.dumps(self._asked(is_attended))},
                stdin=None if is_attended else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=None if is_attended else subprocess.PIPE,
                check=False,
            )
        except OSError as error:
            hint = self._exec.text("installHint") or f"install {self._command}, or correct its path"
            raise self._failed(f"cannot be run ({error.strerror}): {hint}") from error
        if done.returncode:
            lines = (done.stderr or b"").decode(errors="replace").strip().splitlines()
            raise self._failed(f"ended with exit code {done.returncode}: {lines[-1] if lines else 'see above'}")
        return self._credential_of(done.stdout)

    def _words(self) -> list[str]:
        # A path with a slash is relative to the kubeconfig; a name is looked up in PATH.
        command = str(self._exec.folder / self._command) if "/" in self._command else self._command
        words = self._exec.fields.get("args") or []
        if not isinstance(words, list):
            raise unusable(f"args of {self._exec.what} must be a list")
        # On Windows, programs such as gcloud are scripts, which only their full name starts.
        return [shutil.which(command) or command, *map(str, words)]

    def _variables(self) -> dict[str, str]:
        return {str(each.get("name")): str(each.get("value", "")) for each in self._exec.mappings("env")}

    def _asked(self, is_attended: bool) -> dict[str, Any]:
        spec: dict[str, Any] = {"interactive": is_attended}
        if self._exec.flag("provideClusterInfo"):
            spec["cluster"] = _cluster_info(self._cluster)
        return {"apiVersion": self._exec.text("apiVersion"), "kind": "ExecCredential", "spec": spec}

    def _credential_of(self, printed: bytes) -> tuple[Credential, datetime | None]:
        try:
            status = json.loads(printed)["status"]
            until = status.get("expirationTimestamp")
            expires = moment(_FRACTION.sub("", until)).astimezone() if until else None
            header = _bearer(status["token"], self._exec.what) if status.get("token") else None
            pair = [as_file(status[key].encode()) for key in _PAIR] if status.get(_PAIR[0]) else [None, None]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise self._failed("printed no ExecCredential with a status") from error
        if not header and not pair[0]:
            raise self._failed("printed neither a token nor a certificate")
        return Credential(header, *pair), expires

    def _failed(self, how: str) -> ClientError:
        return ClientError(f"the login plugin {self._command} of {self._user.what} {how}. Then {self.again}")


class ProviderLogin(Login):
    """A user with an `auth-provider`, which kubectl no longer has: the kubernetes package knows some of them."""

    again = "log in again with the tool of your cluster"

    def __init__(self, context: Context) -> None:
        super().__init__(context.user)
        self._context = context
        self._configuration: Any = None

    def credential(self) -> Credential:
        """Return the credential of the provider, renewed if it has expired."""
        if self._configuration is None:
            self._configuration = self._load()
        token = self._configuration.get_api_key_with_prefix("BearerToken")
        return super().credential()._replace(authorization=token)

    def _load(self) -> Any:
        from kubernetes.client import Configuration
        from kubernetes.config import load_kube_config

        configuration = Configuration()
        try:
            load_kube_config(context=self._context.name, client_configuration=configuration)
        except Exception as error:  # A provider may raise anything.
            why = f"the auth-provider of {self._user.what} gives no token ({type(error).__name__}: {error})"
            raise ClientError(f"{why}: {self.again}, or replace it by a login plugin") from error
        return configuration


_PAIR = ("clientCertificateData", "clientKeyData")


def login_of(context: Context) -> Login:
    """Return how the user of a context logs in."""
    if context.user.mapping("auth-provider"):
        return ProviderLogin(context)
    # A token wins, as with kubectl.
    if context.user.mapping("exec") and not any(map(context.user.text, ("token", "tokenFile"))):
        return PluginLogin(context.user, context.cluster)
    return Login(context.user)


def _bearer(token: str, what: str) -> str:
    if not (token.isascii() and token.isprintable()):
        raise unusable(f"the token of {what} has characters that no token has")
    return f"Bearer {token}"


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except (OSError, ValueError) as error:
        raise unusable(f"its file {path} cannot be read") from error


def _has_expired(end: datetime | None) -> bool:
    return end is not None and end - _EARLY <= datetime.now(timezone.utc)


def _cluster_info(cluster: Entry) -> Mapping[str, Any]:
    """Return what a plugin is told of its cluster."""
    named = {str(each.get("name")): each.get("extension") for each in cluster.mappings("extensions")}
    return {**cluster.fields, "config": named.get("client.authentication.k8s.io/exec")}
