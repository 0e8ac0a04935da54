"""Stop a process at `breakpoint()`, or a rank where an exception was raised that leaves one of its methods."""

from __future__ import annotations

import builtins
import contextlib
import os
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from dataclasses import replace
from types import FrameType
from typing import Any

import ray

from workergroups.ray_private.process import process_id
from workergroups.stacks.exception_text import exception_line

from . import announced
from .listening import FIRST_PORTS, Debugpy
from .pauses import MAX_TEXT, Pause

_builtin_breakpoint = builtins.breakpoint
_WATCH_SECONDS = 0.2


_stopper: _Stopper | None = None


def enable(process_id: str, name: str, local_rank: int) -> None:
    """Let `breakpoint()` stop this process here and not in Ray's debugger, which listens to all pods.

    Args:
        process_id: The id under which it announces its pauses: of a rank, its actor id.
        name: The name of the rank or the process for people.
        local_rank: The rank's number on its node, which determines the port.
    """
    global _stopper
    _stopper = _Stopper(process_id, name, local_rank)
    _stopper.take_breakpoints()


def stop(frame: FrameType) -> None:
    """Stop this process, which is no rank, in the frame of a `breakpoint()`; the next ones come here by themselves."""
    if _stopper is None:
        # Processes that begin to pause at once should not choose the same port.
        enable(process_id(), f"process {os.getpid()}", os.getpid() % FIRST_PORTS)
    assert _stopper is not None
    _stopper.stop(frame)


def post_mortem(error: Exception) -> None:
    """Stop this rank where the exception was raised, so that a debugger can attach."""
    if _stopper is not None:
        _stopper.look_at(error)


class _Stopper:
    """Stops this process until a debugger has attached."""

    def __init__(self, process_id: str, name: str, local_rank: int) -> None:
        self._process_id, self._name, self._local_rank = process_id, name, local_rank
        self._debugpy: Debugpy | None = None
        self._one_at_a_time = threading.Lock()
        self._announced: Pause | None = None
        self._announcing = threading.Lock()

    def take_breakpoints(self) -> None:
        """Take the hook of `breakpoint()`, which Ray and debugpy set to their own."""
        builtins.breakpoint = _builtin_breakpoint
        sys.breakpointhook = self._on_breakpoint

    def look_at(self, error: Exception) -> None:
        """Stop where the exception was raised."""
        frame, line = list(traceback.walk_tb(error.__traceback__))[-1]
        debugpy = self._attached_at(frame, line, error)
        if debugpy is not None:
            debugpy.look_at(error)

    def _on_breakpoint(self, *_args: Any, **_kwargs: Any) -> None:
        self.stop(sys._getframe(1))

    def stop(self, frame: FrameType) -> None:
        """Stop in this frame."""
        debugpy = self._attached_at(frame, frame.f_lineno, None)
        if debugpy is not None:
            debugpy.stop_at(frame)

    def _attached_at(self, frame: FrameType, line: int, error: Exception | None) -> Debugpy | None:
        """Return debugpy once a debugger is attached to it; ``None`` if none can attach."""
        with self._one_at_a_time:
            try:
                self._debugpy = debugpy = self._debugpy or Debugpy()
                if not debugpy.is_attached:
                    self._wait(debugpy, _pause_at(frame, line, error))
                return debugpy
            except (ImportError, OSError, RuntimeError) as problem:
                self._withdraw(self._announced)
                _tell(f"{self._name} does not pause for a debugger: {problem}. Install debugpy 1.8.22 or later")
                return None

    def _wait(self, debugpy: Debugpy, pause: Pause) -> None:
        """Announce that this rank is paused, and wait until a debugger attaches."""
        self._announce(pause)  # before listening, which takes a second
        debugpy.listen(self._local_rank)
        self.take_breakpoints()
        self._announce(replace(pause, port=debugpy.port))
        _tell(
            f"{self._name} is paused at {pause.where}: debugpy listens on 127.0.0.1:{debugpy.port}. Attach with "
            f"`python -m workergroups.debugger.prompt {debugpy.port}` here, or with `workergroups debug` from outside "
            "the cluster"
        )
        debugpy.wait_until_attached()
        attached = replace(pause, port=debugpy.port, is_attached=True)
        self._announce(attached)
        self._withdraw_when_left(debugpy, attached)

    def _announce(self, pause: Pause) -> None:
        with self._announcing, _told_if_it_fails():
            self._announced = pause
            announced.announce(self._process_id, pause)

    def _withdraw(self, pause: Pause | None) -> None:
        """Withdraw the announcement, unless the rank has paused again since."""
        with self._announcing, _told_if_it_fails():
            if pause is not None and pause is self._announced:
                announced.withdraw(self._process_id)

    def _withdraw_when_left(self, debugpy: Debugpy, attached: Pause) -> None:
        """Withdraw the announcement when the debugger has left, from a thread that debugpy does not trace."""

        def watch() -> None:
            while debugpy.is_attached:
                time.sleep(_WATCH_SECONDS)
            self._withdraw(attached)

        thread = threading.Thread(target=watch, name="workergroups-debugger", daemon=True)
        thread.pydev_do_not_trace = thread.is_pydev_daemon_thread = True  # type: ignore[attr-defined]
        thread.start()


def _pause_at(frame: FrameType, line: int, error: Exception | None) -> Pause:
    file = frame.f_code.co_filename
    said = exception_line("".join(traceback.format_exception_only(type(error), error))) if error else ""
    return Pause(
        node_id=ray.get_runtime_context().get_node_id(),
        file=file[-MAX_TEXT:],
        line=line,
        function=str(getattr(frame.f_code, "co_qualname", frame.f_code.co_name))[:MAX_TEXT],  # since Python 3.11
        directory=_root_of(file)[:MAX_TEXT],
        error=said[:MAX_TEXT],
        port=0,
        since=time.time(),
    )


def _root_of(file: str) -> str:
    """Return the longest directory of ``sys.path`` that contains the file."""
    roots = [path.rstrip(os.sep) for path in sys.path if path and file.startswith(path.rstrip(os.sep) + os.sep)]
    return max(roots, key=len, default="")


@contextlib.contextmanager
def _told_if_it_fails() -> Iterator[None]:
    """Print why an announcement failed; the user's method must not fail because of it."""
    try:
        yield
    except Exception as error:
        _tell(f"cannot announce the pause: {error}")


def _tell(sentence: str) -> None:
    print(f"[workergroups] {sentence}", file=sys.stderr, flush=True)
