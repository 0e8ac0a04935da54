"""The local Ray on which all contenders run."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import ray
from ray._private.internal_api import node_stats

_CPUS = 128
"""More than the machine has: Ray only counts them."""


@contextlib.contextmanager
def local_ray(object_store_bytes: int) -> Iterator[str]:
    """Start a Ray cluster on this machine; yield its address."""
    os.environ.update(
        RAY_AUTH_MODE="disabled",  # no token file
        RAY_prestart_worker_first_driver="0",  # no process for each of these CPUs
        PYTHONPATH=str(Path(__file__).parents[1]),  # ranks import their class by name
    )
    context = ray.init(
        address="local",
        num_cpus=_CPUS,
        object_store_memory=object_store_bytes,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
    )
    try:
        yield context.address_info["address"]
    finally:
        ray.shutdown()


def bytes_ever_put() -> int:
    """Return the bytes of all objects that were ever created in the object store."""
    (node,) = ray.nodes()
    stats = node_stats(node["NodeManagerAddress"], node["NodeManagerPort"], include_memory_info=False)
    return int(stats.store_stats.cumulative_created_bytes)
