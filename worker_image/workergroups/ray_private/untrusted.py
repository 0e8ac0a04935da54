"""Keep what user processes made from doing anything in this process."""

import logging
from typing import Any

import ray

LOGGER = logging.getLogger(__name__)


def refuse_to_unpickle() -> None:
    """From now on this process, a driver of Ray's, unpickles no object, and prints no text, that another made.

    Nothing here asks for an object. But Ray loads by itself the exception of a task that failed, when the last
    reference to it goes, in order to log it; and it prints what any process of the driver's job calls an error.
    """
    worker = ray._private.worker.global_worker
    worker.raise_errors = _leave
    worker.deserialize_objects = _refuse
    ray._private.worker.print_to_stdstream = _leave


def _leave(*_arguments: Any, **_named: Any) -> None:
    """What a user's process says is told by the reports, or not at all."""


def _refuse(*_arguments: Any, **_named: Any) -> Any:
    raise RuntimeError("the executor unpickles nothing that a user's process may have made")
