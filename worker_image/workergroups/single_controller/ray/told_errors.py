"""What a rank tells of an exception that leaves its constructor or a method: where it was, and the user's text."""

from __future__ import annotations

import os
import traceback
from typing import Any

from ray import cloudpickle

from workergroups.deaths.rank_exception import who_raised
from workergroups.ray_private import task_errors
from workergroups.stacks.exception_text import exception_line

from .lost_context import end_soon, first_line, lost_context, visible_devices

_GIB = 2**30
_DEVICES = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES")


def enable(actor_id: str) -> None:
    """Let all exceptions of this rank arrive at their callers, with its number and its devices."""
    rank = who_raised(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), os.environ["WG_PREFIX"])

    def told(text: str, error: BaseException) -> tuple[str, BaseException]:
        lines = [", ".join([rank, *devices()])]
        if why := lost_context():
            lines.append(f"this rank ends, since {why}")
            end_soon(actor_id, ", ".join([why, *_given_devices()]))
        # Ray's compiled code ends the process at half of a surrogate pair, such as in the name of a file.
        return "\n".join([*lines, text]).encode(errors="backslashreplace").decode(), sendable(error)

    task_errors.change_own(actor_id, told)


def sendable(error: BaseException) -> BaseException:
    """Return the error, or if it does not survive being pickled, one with the name of its class and its text."""
    try:
        if isinstance(cloudpickle.loads(cloudpickle.dumps(error)), BaseException):
            return error
    except Exception:  # whatever the user's classes raise when they are pickled
        pass
    text = exception_line("".join(traceback.format_exception_only(type(error), error)))
    return RuntimeError(text or type(error).__name__)


def devices() -> list[str]:
    """Return which devices this rank has; if it uses them by torch, also how much of their memory who holds."""
    return [*_given_devices(), *(_memory_of(cuda, device) for cuda, device in visible_devices())]


def _given_devices() -> list[str]:
    """Return the numbers of the devices on the node: torch counts those of this process from 0."""
    return [f"{name}={value}" for name in _DEVICES if (value := os.environ.get(name))]


def _memory_of(cuda: Any, device: int) -> str:
    try:
        free, total = cuda.mem_get_info(device)
        own = cuda.memory_reserved(device)
        return (
            f"cuda:{device} ({cuda.get_device_name(device)}): {free / _GIB:.1f} of {total / _GIB:.1f} GiB are free, "
            f"and torch holds {own / _GIB:.1f} GiB in this process"
        )
    except Exception as error:  # as after an error that ends the device's context
        return f"cuda:{device} does not answer: {first_line(error)}"
