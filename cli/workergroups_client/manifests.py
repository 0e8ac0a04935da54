"""Read Kubernetes objects from a file, a directory, a kustomization, or standard input."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import yaml

from workergroups_api.manifest import RESOURCE_POOL, WORKER_GROUP, Manifest

from .errors import ClientError

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
        found = [manifest for text in _texts(path) for manifest in yaml.safe_load_all(text) if manifest]
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ClientError(f"{path} cannot be read: {error}") from error
    if not found:
        raise ClientError(f"{path} contains no Kubernetes objects")
    for manifest in found:
        if not isinstance(manifest, dict) or not {"apiVersion", "kind", "metadata"} <= manifest.keys():
            raise ClientError(f"{path} contains what is not a Kubernetes object: add apiVersion, kind and metadata")
    return sorted(found, key=lambda manifest: _ORDER.get(manifest["kind"], 0))


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


def _texts(path: str) -> Iterable[str]:
    if path == "-":
        return [sys.stdin.read()]
    directory = Path(path)
    if not directory.is_dir():
        return [directory.read_text()]
    if any((directory / name).exists() for name in _KUSTOMIZATIONS):
        return [_kustomized(directory)]
    return [file.read_text() for file in sorted(directory.iterdir()) if file.suffix in _SUFFIXES]


def _kustomized(directory: Path) -> str:
    command = ["kubectl", "kustomize", str(directory)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise ClientError(f"{directory} is a kustomization, which needs kubectl: install it") from error
    if done.returncode:
        raise ClientError(f"`{' '.join(command)}` failed: {done.stderr.strip()}")
    return done.stdout
