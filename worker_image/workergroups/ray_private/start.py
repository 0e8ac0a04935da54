"""The parts of Ray's own `ray start` that `workergroups_agent.ray_start` replaces."""

from __future__ import annotations

import sys
from collections.abc import Callable, ValuesView
from pathlib import Path
from typing import Any

import ray._private.node
import ray._private.services
from ray.scripts.scripts import main as ray_command

__all__ = [
    "FIND_HEAD_NODE",
    "GET_NODE",
    "KEEPS_GCS_STATE",
    "RAYS_DEFAULT_WORKER",
    "RAYS_SETUP_WORKER",
    "START_PROCESS",
    "VERSION",
    "connect",
    "get",
    "nodes",
    "put",
    "ray_command",
    "replace",
]

Function = Callable[..., Any]

_WORKERS = Path(ray._private.services.__file__).parent / "workers"
RAYS_DEFAULT_WORKER = str(_WORKERS / "default_worker.py")
RAYS_SETUP_WORKER = str(_WORKERS / "setup_worker.py")
START_PROCESS = (ray._private.services.__name__, "start_ray_process")
"""Starts each process of a node."""
FIND_HEAD_NODE = (ray._private.node.__name__, "get_all_node_info_until_retrieved")
"""Asks the GCS for the head's node, on a worker; since Ray 2.60."""
GET_NODE = (ray._private.services.__name__, "get_node")
"""Waits until this node has joined, for 30 s."""
VERSION = ray.__version__
KEEPS_GCS_STATE = hasattr(ray._private.node.Node, "_is_rocksdb_gcs")
"""Whether the GCS can keep its state on a disk; since Ray 2.60."""


def replace(function: tuple[str, str], ours: Callable[[Function], Function]) -> None:
    """Replace Ray's function by what ``ours`` makes of it. A Ray without that function starts as usual."""
    module, name = function
    if (theirs := getattr(sys.modules[module], name, None)) is not None:
        setattr(sys.modules[module], name, ours(theirs))


def connect(address: str) -> Any:
    """Return a client of the GCS at that address, as Ray itself uses one."""
    return ray._raylet.GcsClient(address=address)


def put(client: Any, namespace: bytes, key: bytes, value: bytes, *, overwrite: bool) -> None:
    """Write a value into the GCS's key-value store by such a client."""
    client.internal_kv_put(key, value, overwrite, namespace)


def get(client: Any, namespace: bytes, key: bytes) -> bytes | None:
    """Return a value of the GCS's key-value store by such a client, ``None`` if there is none."""
    value: bytes | None = client.internal_kv_get(key, namespace)
    return value


def nodes(client: Any, **choice: Any) -> ValuesView[Any] | None:
    """Return the nodes that the GCS knows, as Ray's own function returns them; ``None`` if there are none."""
    found = client.get_all_node_info(**choice)
    return found.values() if found else None
