"""When a reference to an object ends, wherever it was passed to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ray


def watches_references() -> bool:
    """Return whether this Ray tells the owner of an object when nobody refers to it any more; 2.60 does."""
    return hasattr(ray._private.worker.global_worker.core_worker, "add_object_out_of_scope_callback")


def when_unreferenced(ref: Any, callback: Callable[[bytes], None]) -> None:
    """Call a function with the id of an object that this process has put, once no process refers to it.

    It is called in a thread of Ray's, and must be quick. If a process that refers to the object is killed, that is
    noticed some seconds later.
    """
    core_worker = ray._private.worker.global_worker.core_worker
    if not core_worker.add_object_out_of_scope_callback(ref, callback):
        callback(ref.binary())


def counts_references() -> bool:
    """Return whether what is pickled in this thread now is an object of Ray's, which counts the references in it."""
    if not ray.is_initialized():
        return False
    return bool(ray._private.worker.global_worker.get_serialization_context().is_in_band_serialization())
