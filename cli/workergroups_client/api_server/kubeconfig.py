"""Kubeconfigs: the API server that a context names, and its user. Several files are merged as kubectl merges them.

The kubernetes package reads kubeconfigs, too, but its import takes longer than all that `workergroups status` does.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import tempfile
import threading
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from ..errors import ClientError

DEFAULT_PATH = Path("~/.kube/config")
_IN_CLUSTER = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_WAY_OUT = "Set KUBECONFIG, or copy the cluster's kubeconfig to ~/.kube/config"
_SECTIONS = {"contexts": "context", "clusters": "cluster", "users": "user"}


@dataclass(frozen=True)
class Entry:
    """A context, a cluster or a user of a kubeconfig."""

    what: str
    """Its section and its name, for messages."""
    fields: Mapping[str, Any]
    folder: Path
    """The folder of the file: paths in it are relative to that."""

    def text(self, key: str) -> str | None:
        """Return a text; ``None`` if it is absent or empty."""
        value = self.fields.get(key)
        if value is not None and not isinstance(value, str):
            raise unusable(f"{key} of {self.what} must be a string: put it in quotes")
        return value or None

    def flag(self, key: str) -> bool:
        """Return whether it is set."""
        value = self.fields.get(key) or False
        if not isinstance(value, bool):
            raise unusable(f"{key} of {self.what} must be true or false, without quotes")
        return value

    def mapping(self, key: str) -> Mapping[str, Any] | None:
        """Return a mapping; ``None`` if it is absent."""
        value = self.fields.get(key)
        if value is not None and not isinstance(value, dict):
            raise unusable(f"{key} of {self.what} must be a mapping")
        return value

    def mappings(self, key: str) -> list[Mapping[str, Any]]:
        """Return a list of mappings; an empty one if it is absent."""
        value = self.fields.get(key) or []
        if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            raise unusable(f"{key} of {self.what} must be a list of mappings")
        return value

    def path(self, key: str) -> str | None:
        """Return the absolute path of a file; ``None`` if none is named."""
        named = self.text(key)
        return str(self.folder / os.path.expanduser(named)) if named else None

    def file(self, key: str) -> str | None:
        """Return the path of a file with the content of ``KEY-data``, or else of the file that KEY names."""
        data = self.text(f"{key}-data")
        if data is None:
            return self.path(key)
        try:
            return as_file(b64decode(data, validate=True))
        except ValueError as error:
            raise unusable(f"{key}-data of {self.what} is not base64") from error


@dataclass(frozen=True)
class Context:
    """A context of a kubeconfig, with its cluster and its user."""

    name: str
    namespace: str
    cluster: Entry
    user: Entry

    @property
    def server(self) -> str:
        """The address of the API server."""
        server = (self.cluster.text("server") or "").rstrip("/")
        if not server.startswith(("https://", "http://")):
            raise unusable(f"{self.cluster.what} has no server such as https://cluster.example:6443")
        return server


def load(name: str | None) -> Context:
    """Return a context of the kubeconfig: by default the current one, or in a pod that of its ServiceAccount.

    Raises:
        ClientError: There is no kubeconfig, or it cannot be used; the message says why.
    """
    paths = [path for path in _paths() if _is_there(path)]
    if not paths and name is None and (own := _of_service_account()):
        return own
    sections, current = _merged(paths)
    contexts = sections["contexts"]
    names = ", ".join(sorted(contexts)) or "none"
    if name is not None and name not in contexts:
        raise ClientError(f"the kubeconfig has no context {name}; it has {names}: choose one with --context")
    if not paths:
        raise unusable("there is no file " + " nor ".join(map(str, _paths())))
    chosen = name or current
    if not chosen:
        raise unusable(f"it names no current context (kubectl config use-context NAME); it has {names}")
    if chosen not in contexts:
        raise unusable(f"its current context is {chosen}, but it has {names}")
    context = contexts[chosen]
    return Context(
        name=chosen,
        namespace=context.text("namespace") or "default",
        cluster=_referred(sections, context, "cluster"),
        user=_referred(sections, context, "user") if context.text("user") else Entry("no user", {}, context.folder),
    )


def unusable(why: str) -> ClientError:
    """Return the error for a kubeconfig that cannot be used."""
    return ClientError(f"there is no usable kubeconfig: {why}. {_WAY_OUT}")


def as_file(content: bytes) -> str:
    """Return the path of a file with this content, which only this user can read, and which ends with the process."""
    path = _private_folder() / hashlib.sha256(content).hexdigest()
    if not path.exists():
        # Another thread may read the file at any time.
        fresh = path.with_suffix(f".{threading.get_ident()}")
        fresh.write_bytes(content)
        fresh.replace(path)
    return str(path)


def remove_files() -> None:
    """Remove the files of `as_file` now, for a process that ends without Python's exit handlers."""
    if _private_folder.cache_info().currsize:
        shutil.rmtree(_private_folder(), ignore_errors=True)


@cache
def _private_folder() -> Path:
    folder = tempfile.mkdtemp(prefix="workergroups-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _paths() -> list[Path]:
    named = [name for name in os.environ.get("KUBECONFIG", "").split(os.pathsep) if name]
    # Without a home directory, this leaves the ~, and Path.expanduser fails.
    return [Path(os.path.expanduser(name)) for name in named or [str(DEFAULT_PATH)]]


def _is_there(path: Path) -> bool:
    """Return whether there is such a file, also if this user cannot look: reading it says why."""
    try:
        path.stat()
    except OSError as error:
        return not isinstance(error, (FileNotFoundError, NotADirectoryError))
    return True


def _merged(paths: list[Path]) -> tuple[dict[str, dict[str, Entry]], str | None]:
    """Return the entries of all files by section and name, and the current context. The first file that has it wins."""
    sections: dict[str, dict[str, Entry]] = {section: {} for section in _SECTIONS}
    current = None
    for path in paths:
        document = Entry(str(path), _document(path), path.absolute().parent)
        for section, key in _SECTIONS.items():
            for name, entry in _entries(document, section, key).items():
                sections[section].setdefault(name, entry)
        current = current or document.text("current-context")
    return sections, current


def _document(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
        # The loader in C takes a tenth of the time.
        found = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except OSError as error:
        raise unusable(f"{path} cannot be read ({error.strerror})") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        raise unusable(f"{path} is not YAML" + (f" (line {mark.line + 1})" if mark else "")) from error
    if not isinstance(found, dict):
        raise unusable(f"{path} is not a kubeconfig, but {'empty' if found is None else type(found).__name__}")
    return found


def _entries(document: Entry, section: str, key: str) -> dict[str, Entry]:
    found: dict[str, Entry] = {}
    for each in document.mappings(section):
        named = Entry(f"{section} of {document.what}", each, document.folder)
        name = named.text("name")
        if name is None:
            raise unusable(f"one of the {section} of {document.what} has no name")
        found.setdefault(name, Entry(f"{key} {name} in {document.what}", named.mapping(key) or {}, document.folder))
    return found


def _referred(sections: Mapping[str, Mapping[str, Entry]], context: Entry, key: str) -> Entry:
    name, entries = context.text(key), sections[f"{key}s"]
    if name is None or name not in entries:
        raise unusable(f"{context.what} names {key} {name or '(none)'}, but it has {', '.join(entries) or 'none'}")
    return entries[name]


def _of_service_account() -> Context | None:
    """Return the context of a pod's ServiceAccount; ``None`` outside a pod."""
    host, port = (os.environ.get(f"KUBERNETES_SERVICE_{name}") for name in ("HOST", "PORT"))
    if not host or not (_IN_CLUSTER / "token").exists():
        return None
    address = f"[{host}]" if ":" in host else host
    cluster = {"server": f"https://{address}:{port or 443}", "certificate-authority": "ca.crt"}
    own_namespace = _IN_CLUSTER / "namespace"
    return Context(
        name="in-cluster",
        namespace=own_namespace.read_text().strip() if own_namespace.exists() else "default",
        cluster=Entry("the pod's cluster", cluster, _IN_CLUSTER),
        user=Entry("the pod's ServiceAccount", {"tokenFile": "token"}, _IN_CLUSTER),
    )
