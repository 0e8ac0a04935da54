"""Read Kubernetes objects from a file, a directory, a kustomization, or standard input."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from workergroups_api.manifest import RESOURCE_POOL, WORKER_GROUP, Manifest

from ..errors import ClientError
from .kubernetes_yaml import documents

_SUFFIXES = {".yaml", ".yml", ".json"}
_KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
# Pools and groups come after the objects that they need.
_ORDER = {RESOURCE_POOL.kind: 1, WORKER_GROUP.kind: 2}


def load(path: str) -> list[Manifest]:
    """Return the objects at a path (``-`` is standard input), in the order in which to apply them.

    Raises:
        ClientError: The path cannot be read, or contains no objects.
    """
    try:
        found = [
            (f"{file}, object {number}", manifest)
            for file, text in _texts(path)
            for number, manifest in enumerate(_objects(text), start=1)
        ]
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ClientError(f"{path} cannot be read: {error}") from error
    if not found:
        raise ClientError(f"{path} contains no Kubernetes objects")
    for place, manifest in found:
        if why := _unfit(manifest):
            raise ClientError(f"{place}: {why}")
    return sorted((manifest for _, manifest in found), key=lambda manifest: _ORDER.get(manifest["kind"], 0))


def _objects(text: str) -> list[Any]:
    return [manifest for document in documents(text) for manifest in _flat(document)]


def _flat(document: Any) -> Iterable[Any]:
    """Return the objects of a document, which may be a list of them, and may be empty."""
    is_mapping = isinstance(document, Mapping)
    if is_mapping and str(document.get("kind")).endswith("List") and isinstance(document.get("items"), list):
        return [each for item in document["items"] for each in _flat(item)]
    return [document] if document or not (is_mapping or document is None) else []


def _unfit(manifest: Any) -> str | None:
    """Return why something is not an object that can be applied."""
    if not isinstance(manifest, Mapping):
        return f"it is {_kind_of(manifest)}, not a mapping with apiVersion, kind and metadata"
    for field in ("apiVersion", "kind"):
        if not isinstance(manifest.get(field), str):
            return _missing(field, manifest)
    metadata = manifest.get("metadata")
    if not isinstance(metadata, Mapping):
        return f"metadata is {_kind_of(metadata)}: below it, indent name and what else belongs to it"
    if "name" not in metadata and "generateName" in metadata:
        return "metadata.generateName cannot be applied, since each time would make another object: set metadata.name"
    if not isinstance(metadata.get("name"), str) or not metadata["name"]:
        return _missing("metadata.name", metadata)
    if not isinstance(metadata.get("namespace", ""), str):
        return _missing("metadata.namespace", metadata)
    if manifest["kind"] in _ORDER and not isinstance(manifest.get("spec", {}), Mapping):
        return f"spec is {_kind_of(manifest['spec'])}: below it, indent the fields that belong to it"
    return None


def _missing(field: str, holder: Mapping[str, Any]) -> str:
    value = holder.get(field.rpartition(".")[2])
    return f"{field} is missing" if value in (None, "") else f"{field} is {_kind_of(value)}, not text: quote it"


def _kind_of(value: Any) -> str:
    match value:
        case None:
            return "empty"
        case bool() | int() | float():
            return json.dumps(value)
        case list():
            return "a list"
        case Mapping():
            return "a mapping"
    return "text"


def namespace_of(manifests: Sequence[Manifest], asked: str | None) -> str | None:
    """Return the namespace that pools and groups name, or else the one of the command line.

    Raises:
        ClientError: Pools and groups name several namespaces, or another one than the command line.
    """
    of_ours = [each["metadata"] for each in manifests if each["kind"] in _ORDER]
    named = sorted({str(metadata["namespace"]) for metadata in of_ours if "namespace" in metadata})
    if len(named) > 1:
        raise ClientError(f"the pools and groups are in several namespaces ({', '.join(named)}): apply one by one")
    own = named[0] if named else asked
    if asked not in (None, own):
        raise ClientError(f"the pools and groups are in namespace {own}, not {asked}: omit -n {asked}")
    return own


def _texts(path: str) -> Iterable[tuple[str, str]]:
    """Return the texts, each with what it is called in messages."""
    if path == "-":
        return [(path, sys.stdin.read())]
    directory = Path(path)
    if not directory.is_dir():
        return [(path, directory.read_text(encoding="utf-8"))]
    if any((directory / name).exists() for name in _KUSTOMIZATIONS):
        return [(path, _kustomized(directory))]
    files = (file for file in sorted(directory.iterdir()) if file.suffix in _SUFFIXES)
    return [(str(file), file.read_text(encoding="utf-8")) for file in files]


def _kustomized(directory: Path) -> str:
    command = ["kubectl", "kustomize", str(directory)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise ClientError(f"{directory} is a kustomization, which needs kubectl: install it") from error
    if done.returncode:
        raise ClientError(f"`{' '.join(command)}` failed: {done.stderr.strip()}")
    return done.stdout
