"""Keep objects of users' processes from running code in this process."""

import logging
from typing import Any

import ray

LOGGER = logging.getLogger(__name__)


def refuse_to_unpickle() -> None:
    """Keep this driver from unpickling objects and printing text of other processes.

    The executor never fetches an object. But Ray unpickles the exception of a failed task in order to log it, when the
    last reference to it is dropped. And it prints whatever a process of the driver's job reports as an error.
    """
    worker = ray._private.worker.global_worker
    worker.raise_errors = _leave
    worker.deserialize_objects = _refuse
    ray._private.worker.print_to_stdstream = _leave


def _leave(*_arguments: Any, **_named: Any) -> None:
    """Ignore the text of a user's process: the reports hold what is needed."""


def _refuse(*_arguments: Any, **_named: Any) -> Any:
    raise RuntimeError("the executor unpickles nothing that a user's process may have made")
