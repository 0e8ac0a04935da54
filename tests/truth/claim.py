"""A claim for the state of a head's GCS, on a directory: the nodes of the local cluster share their files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any


@contextmanager
def directory_of_heads() -> Iterator[str]:
    """Create a directory that any user can write to, as the pods run as another one."""
    with TemporaryDirectory(prefix="heads-") as directory:
        Path(directory).chmod(0o777)
        yield directory


def claim(namespace: str, name: str, directory: str) -> list[dict[str, Any]]:
    """Return the manifests of the claim and of its volume, which somebody must delete."""
    asked: dict[str, Any] = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
    volume = {
        "capacity": {"storage": "1Gi"},
        "hostPath": {"path": directory, "type": "DirectoryOrCreate"},
        "claimRef": {"namespace": namespace, "name": name},
    }
    return [
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": {**asked, **volume}},
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name},
            "spec": {**asked, "resources": {"requests": {"storage": "1Gi"}}},
        },
    ]
