"""What the seconds of a rank go into, as a counter among Ray's metrics: methods, and waiting for others.

A thread looks ten times a second at what the process is in. The ranks' calls are as quick as without it, and know
nothing of it. Ranks whose methods are coroutines have no such counter: on no stack is what they await.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from ray.util.metrics import Counter

from workergroups.naming import RankName
from workergroups.processes import named_ranks
from workergroups.processes.tables import COLLECTIVE, IDLE, RANK_SECONDS, RUNNING, WAITING
from workergroups.ray_private.process import FOLDER, METHOD_EXECUTOR, runs_coroutines
from workergroups.single_controller.base import decorator

_OTHERS = "others"
_MOST_METHODS = 50
"""Methods of a rank that are counted; all further ones are counted together."""
_LOOK_SECONDS = 0.1
_OURS = f"{Path(__file__).parents[2]}/"
_FETCH = f"{_OURS}transfers/fetching.py"


class Frame(NamedTuple):
    """A function that is being executed."""

    file: str
    function: str
    """Its name; of our function around a registered method, the method's name."""
    is_method: bool = False
    """Whether it is our function around a registered method."""


def activity(stacks: Iterable[Sequence[Frame]]) -> tuple[str, str]:
    """Return what a process is in, and in which method. Each thread's stack begins with the outermost frame."""
    for stack in stacks:
        at = next((at for at, frame in enumerate(stack) if frame.function == METHOD_EXECUTOR), None)
        if at is not None:
            inner = stack[at + 1 :]
            return _kind(inner), _method(inner)
    return IDLE, ""


def _kind(stack: Sequence[Frame]) -> str:
    for frame in reversed(stack):
        if "/torch/distributed/" in frame.file:
            return COLLECTIVE
        if frame.file == _FETCH or (frame.file.startswith(FOLDER) and frame.function in ("get", "wait")):
            return WAITING
    return RUNNING


def _method(stack: Sequence[Frame]) -> str:
    """Return the first function of the user's: Ray and this library have functions around it."""
    registered = (frame for frame in stack if frame.is_method)
    of_user = (frame for frame in stack if not frame.file.startswith((FOLDER, _OURS)))
    found = next(registered, None) or next(of_user, None)
    return _OTHERS if found is None else found.function


class RankSeconds:
    """Adds up the seconds of this process.

    Args:
        tags: What all of its series have.
    """

    def __init__(self, tags: Mapping[str, str]) -> None:
        self._counter = Counter(
            RANK_SECONDS,
            description="What the seconds of ranks went into: activity is Idle, Running, Waiting or Collective",
            tag_keys=(*tags, "activity", "method"),
        )
        self._counter.set_default_tags(dict(tags))
        self._methods: set[str] = set()
        self._before, self._at = activity(_stacks()), time.monotonic()

    def look(self) -> None:
        """Book the time since the last look: half of it for what was seen then, and half for what is seen now."""
        now, at = activity(_stacks()), time.monotonic()
        for kind, method in (self._before, now):
            self._counter.inc((at - self._at) / 2, {"activity": kind, "method": self._known(method)})
        self._before, self._at = now, at

    def _known(self, method: str) -> str:
        if len(self._methods) < _MOST_METHODS:
            self._methods.add(method)
        return method if method in self._methods else _OTHERS


def enable() -> None:
    """Count the seconds of this process if it is a rank of a WorkerGroup; nobody scrapes those of a laptop's."""
    name = named_ranks.own()
    if name is not None and not runs_coroutines():
        threading.Thread(target=_count, args=(name,), name="workergroups-seconds", daemon=True).start()


def _count(name: RankName) -> None:
    seconds = RankSeconds({"group": name.group})
    while True:
        time.sleep(_LOOK_SECONDS)
        seconds.look()


def _stacks() -> list[list[Frame]]:
    """Return the stacks of the other threads; the main thread, which runs most methods, is first.

    Without this thread's own frame: it would refer to the others and to itself, so that whatever ranks compute with,
    such as tensors on devices, would stay until the next collection of garbage. Python 3.12.3 does not even end what a
    generator refers to that is given up, so this is none.
    """
    main, frames = threading.main_thread().ident, sys._current_frames()
    frames.pop(threading.get_ident(), None)
    return [list(_frames(frames[thread]))[::-1] for thread in sorted(frames, key=lambda thread: thread != main)]


def _frames(frame: FrameType | None) -> Iterator[Frame]:
    while frame is not None:
        code = frame.f_code
        is_method = code.co_filename == decorator.__file__ and code.co_name == "method"
        name = frame.f_locals["function"].__name__ if is_method else code.co_name
        yield Frame(code.co_filename, name, is_method)
        frame = frame.f_back
