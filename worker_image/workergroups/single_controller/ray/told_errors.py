"""What a rank tells of an exception that leaves its constructor or a method: where it was, and the user's text.

If the error has made its device useless, such as an illegal memory access, the rank ends: no later call could compute.
CUDA and ROCm then refuse whatever the process asks of the device, until the process ends. A rank that lived on would be
ready for ever, and every call would fail; a rank that ends is told, and restarted as the group's failure policy says.
"""

from __future__ import annotations

import os
import sys
import threading
import traceback
from typing import Any

from ray import cloudpickle

from workergroups.announcements import told_ends
from workergroups.deaths.rank_exception import who_raised
from workergroups.ray_private import task_errors
from workergroups.stacks.exception_text import exception_line

_GIB = 2**30
_SENT = 1.0
"""Seconds within which Ray has sent the exception to its caller."""
_EXIT_CODE = 1
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
    return [*_given_devices(), *(_memory_of(cuda, device) for cuda, device in _used_devices())]


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
        return f"cuda:{device} does not answer: {_first_line(error)}"


def lost_context() -> str | None:
    """Return what a device of this process answers if it answers nothing else any more; ``None`` if all are well."""
    for cuda, device in _used_devices():
        try:
            cuda.mem_get_info(device)
        except Exception as error:  # the error that ended the context, again
            return f"cuda:{device} is lost for this process: {_first_line(error)}"
    return None


def _used_devices() -> list[tuple[Any, int]]:
    """Return ``torch.cuda`` with the number of each device that this process sees; nothing if it uses none by torch."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return []
    return [(torch.cuda, device) for device in range(torch.cuda.device_count())]


def _first_line(error: Exception) -> str:
    """Return what an error of torch says first: the cause; advice for people who debug torch follows."""
    return str(error).strip().partition("\n")[0] or type(error).__name__


def end_soon(actor_id: str, why: str) -> None:
    """End this process, which is that of the actor, when its caller has the exception; tell why at once.

    NCCL's watchdog, which sees the same error, may abort the process at any moment.
    """
    told_ends.tell(actor_id, f"it ended itself, since {why}")
    timer = threading.Timer(_SENT, lambda: told_ends.leave(_EXIT_CODE))
    timer.daemon = True
    timer.start()
