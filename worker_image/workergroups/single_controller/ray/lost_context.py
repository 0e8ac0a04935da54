"""End a rank whose device an error has made useless, such as an illegal memory access: no later call could compute.

CUDA and ROCm then refuse whatever the process asks of the device, until the process ends. A rank that lived on would be
ready for ever, and every call would fail; a rank that ends is told, and restarted as the group's failure policy says.
"""

from __future__ import annotations

import sys
import threading
from typing import Any

from workergroups.announcements import told_ends

_SENT = 1.0
"""Seconds within which Ray has sent the exception to its caller."""
_EXIT_CODE = 1


def lost_context() -> str | None:
    """Return what a device of this process answers if it answers nothing else any more; ``None`` if all are well."""
    for cuda, device in visible_devices():
        try:
            cuda.mem_get_info(device)
        except Exception as error:  # the error that ended the context, again
            return f"cuda:{device} is lost for this process: {first_line(error)}"
    return None


def visible_devices() -> list[tuple[Any, int]]:
    """Return ``torch.cuda`` with the number of each device that this process sees; nothing if it uses none by torch."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return []
    return [(torch.cuda, device) for device in range(torch.cuda.device_count())]


def first_line(error: Exception) -> str:
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
