"""Packages of this machine in pods: torch in an image would be some gigabytes for each node."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.cluster.kubectl import Namespace, kubectl


def mounted(packages: Path) -> dict[str, Any]:
    """Return the fields of a pool with which its drivers and ranks import from this directory of the host."""
    return {
        "volumes": [{"mountPath": "/packages", "readOnly": True, "hostPath": {"path": str(packages)}}],
        "env": [{"name": "PYTHONPATH", "value": "/packages"}],
    }


@contextmanager
def claimed(namespace: Namespace, name: str, directory: Path) -> Iterator[dict[str, Any]]:
    """A volume with this directory of the host at `/NAME`, through a claim: restricted pods may mount no path."""
    volume = f"{namespace.name}-{name}"
    size, modes = {"storage": "1Gi"}, ["ReadOnlyMany"]
    common = {"storageClassName": "", "accessModes": modes}
    namespace.apply(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": volume},
            "spec": {**common, "capacity": size, "hostPath": {"path": str(directory)}},
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name},
            "spec": {**common, "volumeName": volume, "resources": {"requests": size}},
        },
    )
    yield {"mountPath": f"/{name}", "readOnly": True, "persistentVolumeClaim": {"claimName": name}}
    namespace.run("delete", "persistentvolumeclaim", name, "--wait=false")
    kubectl("delete", "persistentvolume", volume, "--wait=false")
