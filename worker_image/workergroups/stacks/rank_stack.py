"""What a rank or another process of Ray is doing, read from the stacks that Python's faulthandler writes."""

from __future__ import annotations

import re
from dataclasses import dataclass

from workergroups_api.vocabulary import Word

MAX_FRAMES = 48
MAX_TEXT = 200
"""Characters of a file's path or a function's name."""

_FRAME = re.compile(r'  File "(?P<file>.*)", line (?P<line>\d+) in (?P<function>.*)')
_STANDARD = re.compile(r"/lib/python3\.\d+/")
_INSTALLED = re.compile("-packages/(torch|ray)/")
_RAYS_EXECUTOR = ("/ray/_private/function_manager.py", "actor_method_executor")
"""Ray calls each method of an actor from this function, but for those of asynchronous actors."""
_RAYS_WORKER = "/ray/_private/worker.py"
_RAYS_MAIN_LOOP = (_RAYS_WORKER, "main_loop")
"""Ray calls each plain task from this function."""
_RAYS_PROGRAM = "/default_worker.py"
_EVENT_LOOP = ("/asyncio/base_events.py", "run_forever")
_OF_RAY = ("/ray/_private/", "/ray/util/tracing/", "/ray/actor.py", "/single_controller/ray/run_method.py")


class Doing(Word):
    """What a rank is doing."""

    METHOD = "Method"
    """It is in a method; the frames are the method's."""
    ASYNC = "Async"
    """It has an event loop. Coroutines that wait have no frames, so it is unknown whether a method has returned."""
    NOTHING = "Nothing"
    """It is in no method."""
    UNKNOWN = "Unknown"
    """It has no stacks: it is frozen, dead, or on a node that does not answer."""


@dataclass(frozen=True)
class Frame:
    """A function that has not returned, and the line that it is at."""

    file: str
    line: int
    function: str

    @property
    def is_library(self) -> bool:
        """Whether it belongs to Python, torch or Ray, and not to what the user wrote or chose."""
        if "-packages/" in self.file:
            return _INSTALLED.search(self.file) is not None
        return self.file.startswith("<") or _STANDARD.search(self.file) is not None

    @property
    def is_collective(self) -> bool:
        """Whether it belongs to ``torch.distributed``."""
        return "/torch/distributed/" in self.file

    def __str__(self) -> str:
        *folders, name = self.file.split("/")
        shown = f"{folders[-1]}/{name}" if name == "__init__.py" and folders else name
        return f"{shown}:{self.line} in {self.function}"


@dataclass(frozen=True)
class RankStack:
    """What a rank is doing."""

    doing: Doing
    frames: tuple[Frame, ...] = ()
    """The frames of its method, the innermost first."""
    methods: int = 0
    """How many of its threads run methods; the frames are those of one."""
    note: str = ""
    """Why it has no stacks."""

    @property
    def waits_for_ray(self) -> bool:
        """Whether it is in ``ray.get`` or ``ray.wait``."""
        return any(_is(frame, (_RAYS_WORKER, function)) for frame in self.frames for function in ("get", "wait"))


def parse(text: str, method: str = "") -> RankStack:
    """Return what a rank is doing.

    Args:
        text: The stacks of its threads, as ``stack_dump.dump`` returns them; or why there are none.
        method: If several methods run in as many threads, the one to look at.
    """
    threads = [frames for frames in map(_frames, re.split(r"\n(?=\S)", text)) if frames]
    if not threads:
        return RankStack(Doing.UNKNOWN, note=(text.strip().splitlines() or ["no stacks"])[-1][:MAX_TEXT])
    methods = [frames for frames in map(_method, threads) if frames is not None]
    if methods:
        wanted = [frames for frames in methods if frames and frames[-1].function == method]
        return RankStack(Doing.METHOD, _shortened((wanted or methods)[0]), len(methods))
    is_async = any(_is(frame, _EVENT_LOOP) for frames in threads for frame in frames)
    return RankStack(Doing.ASYNC if is_async else Doing.NOTHING)


def _frames(thread: str) -> list[Frame]:
    matches = map(_FRAME.fullmatch, thread.splitlines())
    return [
        Frame(match["file"][-MAX_TEXT:], int(match["line"][:9]), match["function"][:MAX_TEXT])
        for match in matches
        if match is not None
    ]


def _method(frames: list[Frame]) -> list[Frame] | None:
    """Return the frames of the method that the thread runs, without those by which Ray calls it; ``None`` if none.

    Of a plain task, they are the function's; of a driver, the whole program's.
    """
    end = next((index for index, frame in enumerate(frames) if _is(frame, _RAYS_EXECUTOR)), None)
    if end is None:
        return _program(frames)
    while end and any(part in frames[end - 1].file for part in _OF_RAY):
        end -= 1
    return frames[:end]


def _program(frames: list[Frame]) -> list[Frame] | None:
    """Return the frames of a main thread that runs a plain task or a driver; ``None`` for any other thread."""
    if _is(frames[0], _RAYS_MAIN_LOOP) or frames[-1].function != "<module>":
        return None
    if frames[-1].file.endswith(_RAYS_PROGRAM):
        end = next((index for index, frame in enumerate(frames) if _is(frame, _RAYS_MAIN_LOOP)), 0)
        return frames[:end] or None
    return frames


def _shortened(frames: list[Frame]) -> tuple[Frame, ...]:
    if len(frames) <= MAX_FRAMES:
        return tuple(frames)
    half = MAX_FRAMES // 2
    return (*frames[:half], *frames[-half:])


def _is(frame: Frame, place: tuple[str, str]) -> bool:
    file, function = place
    return frame.file.endswith(file) and frame.function == function
