"""Why ranks ended themselves, where neither Python nor Ray would say it: user code called `os._exit`, a device is lost.

The rank's process writes it into the GCS's key-value store before it ends. Agent and drivers read it if all that Ray
knows is that the process is gone.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from typing import Any

from workergroups.ray_private import key_value_store

KV_NAMESPACE = "workergroups-told-ends"
"""The namespace of the GCS's key-value store; the keys are actor ids."""
_MOST_BYTES = 1024
_SECONDS = 1.0
"""How long a process waits for the GCS before it ends all the same."""
leave = os._exit
"""Ends the process without a word."""


def enable(actor_id: str) -> None:
    """Let this process tell where it calls `os._exit`; processes that it forks end in silence, as usual."""
    own = os.getpid()

    def told(status: Any) -> None:
        try:
            if os.getpid() == own:
                caller = sys._getframe(1)
                place = f"{caller.f_code.co_filename}:{caller.f_lineno} in {caller.f_code.co_name}"
                tell(actor_id, f"its code called os._exit({status!r}) at {place}")
        finally:
            leave(status)

    os._exit = told  # type: ignore[assignment]


def tell(actor_id: str, why: str) -> None:
    """Tell why this process is about to end: on its standard error, and in the GCS if that answers in time."""
    data = why.encode(errors="backslashreplace")[:_MOST_BYTES]
    with suppress(OSError):
        os.write(2, b"this process ends: " + data + b"\n")
    with suppress(RuntimeError):  # no thread can be started any more
        writing = threading.Thread(target=_write, args=(actor_id, data), daemon=True)
        writing.start()
        writing.join(_SECONDS)


def _write(actor_id: str, data: bytes) -> None:
    with suppress(Exception):  # whatever the GCS answers, the process ends
        key_value_store.put(KV_NAMESPACE, actor_id, data)


def read(data: bytes | None) -> str:
    """Return what a process told, as far as it can be read; empty if it told nothing."""
    return (data or b"")[:_MOST_BYTES].decode(errors="replace")
