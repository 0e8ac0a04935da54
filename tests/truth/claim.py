"""A claim for the state of a head's GCS, on a directory: the nodes of the local cluster share their files."""

from __future__ import annotations

from typing import Any


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


def head_on(name: str) -> dict[str, Any]:
    """Return the `head` of a pool whose GCS keeps its state there, as root: kubelet gives no group such a directory."""
    return {"gcsStorage": {"claimName": name}, "podTemplate": {"spec": {"securityContext": {"runAsUser": 0}}}}
