"""Be a worker that runs nothing and reports why: it stands in for one that cannot start, see `starting`.

It lacks the user's surroundings, so nothing of the user's must run in it, not even an argument's constructor.
"""

from __future__ import annotations

import os
import threading
from typing import Any, NoReturn

from ray._private.function_manager import FunctionActorManager, FunctionExecutionInfo
from ray._private.worker import Worker

from workergroups_api.vocabulary import Variable

KEEP_SECONDS = 20.0
"""After this the process ends, so that it never stands in for a later one, which may be able to start."""
# The agent's own actor asks for the cause itself.
_AGENT = "workergroups_agent."


class StartFailed(RuntimeError):
    """The process for this cannot start; the message says why."""


def cause() -> str | None:
    """Return why the process that this one stands in for cannot start, ``None`` if it stands in for none."""
    return os.environ.get(Variable.START_FAILED.value)


def run_nothing() -> None:
    """Fail whatever Ray gives this process to run, apart from the agent's own actor."""
    timer = threading.Timer(KEEP_SECONDS, os._exit, [0])
    timer.daemon = True
    timer.start()
    load_actor_class = FunctionActorManager._load_actor_class_from_gcs
    get_function = FunctionActorManager.get_execution_info

    def stand_in_for_class(manager: Any, job_id: Any, descriptor: Any) -> Any:
        if descriptor.module_name.startswith(_AGENT):
            return load_actor_class(manager, job_id, descriptor)
        Worker.deserialize_objects = _fail  # Ray has not read the constructor's arguments yet
        return type(descriptor.class_name, (_StandIn,), {})

    def stand_in_for_function(manager: Any, job_id: Any, descriptor: Any) -> Any:
        if descriptor.is_actor_method():
            return get_function(manager, job_id, descriptor)
        Worker.deserialize_objects = _fail
        manager._num_task_executions[descriptor.function_id] = 0
        return FunctionExecutionInfo(function=_fail, function_name=descriptor.function_name, max_calls=1)

    FunctionActorManager._load_actor_class_from_gcs = stand_in_for_class
    FunctionActorManager.get_execution_info = stand_in_for_function


def _fail(*_: Any, **__: Any) -> NoReturn:
    raise StartFailed(cause())


class _StandIn:
    """An actor whose constructor fails."""

    def __init__(self, *_: Any, **__: Any) -> None:
        _fail()

    async def asynchronous(self) -> None:
        """Let it stand in for asynchronous actors, too."""
