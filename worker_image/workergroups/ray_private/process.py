"""What Ray holds in this process: its node, and how the process was started."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from pathlib import Path

import ray

FOLDER = f"{Path(ray.__file__).parent}/"
"""Where Ray's own Python files are."""
METHOD_EXECUTOR = "actor_method_executor"
"""Ray's function around an actor's method; tried with 2.60."""


def has_started_ray() -> bool:
    """Return whether this process has started the Ray that it uses: no nodes are added to that one."""
    node = ray._private.worker._global_node
    return node is not None and bool(node.is_head())


def process_id() -> str:
    """Return Ray's id of what this process is: of its actor, of the job whose driver it is, or of its worker."""
    context = ray.get_runtime_context()
    if ray._private.worker.global_worker.mode == ray.SCRIPT_MODE:
        return str(context.get_job_id())
    return str(context.get_actor_id() or context.get_worker_id())


def runs_coroutines() -> bool:
    """Return whether Ray runs the methods of this process's actor in an event loop."""
    return bool(ray._private.worker.global_worker.core_worker.current_actor_is_asyncio())


def own_pod() -> str:
    """Return the pod in which this process runs, as KubeRay names it to Ray; outside of pods, the host's name."""
    return os.environ.get("RAY_CLOUD_INSTANCE_ID") or socket.gethostname()


def logs_directory() -> str:
    """Return the directory in which Ray keeps the logs of this node."""
    directory: str = ray._private.worker._global_node.get_logs_dir_path()
    return directory


def accelerators_at_start(resource: str) -> Sequence[str] | None:
    """Return the ids that the process's visible-devices variable listed before Ray left it the assigned ones only.

    ``None`` where the variable was not set. ``resource`` is Ray's name of the devices: ``GPU`` or ``NPU``.
    """
    ids: Sequence[str] | None = ray._private.worker.global_worker.original_visible_accelerator_ids.get(resource)
    return ids
