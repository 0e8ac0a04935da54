"""Packages of this machine in pods: torch in an image would be some gigabytes for each node."""

from pathlib import Path
from typing import Any


def mounted(packages: Path) -> dict[str, Any]:
    """Return the fields of a pool with which its drivers and ranks import from this directory of the host."""
    return {
        "volumes": [{"mountPath": "/packages", "readOnly": True, "hostPath": {"path": str(packages)}}],
        "env": [{"name": "PYTHONPATH", "value": "/packages"}],
    }
