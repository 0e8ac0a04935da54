"""What to show of an exception: its last line, and where it comes from."""

from __future__ import annotations

import traceback
from pathlib import Path
from types import FrameType

from workergroups.stacks.rank_stack import Frame

_OWN = ("ray", "workergroups", "workergroups_agent")


def exception_line(text: str) -> str:
    """Return the last line of a traceback: the exception itself."""
    lines = text.strip().splitlines()
    return lines[-1].strip() if lines else ""


def exception_and_place(error: BaseException) -> str:
    """Return the last line of an exception, and where the user's code raised it: ``KeyError: 'a' (adder.py, line 3)``.

    If a library raised it, that is where the user's code called the library. There is no place if the code of Ray or of
    this library raised it.
    """
    said = exception_line("".join(traceback.format_exception_only(error))) or type(error).__name__
    file, line = _place(error)
    return f"{said} ({_short(file)}, line {line})" if isinstance(file, str) else said


def _place(error: BaseException) -> tuple[object, object]:
    if isinstance(error, SyntaxError):
        return error.filename, error.lineno  # the user's code may have set them to anything
    frames = [(frame, line) for frame, line in traceback.walk_tb(error.__traceback__) if _package(frame) != "importlib"]
    if not frames or _package(frames[-1][0]) in _OWN:
        return None, None
    own = [each for each in frames if not _is_library(*each)]
    frame, line = (own or frames)[-1]
    return frame.f_code.co_filename, line


def _is_library(frame: FrameType, line: int) -> bool:
    return _package(frame) in _OWN or Frame(frame.f_code.co_filename, line, frame.f_code.co_name).is_library


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__")).partition(".")[0]


def _short(file: str) -> str:
    """Return the name of a file; of a package's first file, also that of the package."""
    path = Path(file)
    return "/".join(path.parts[-2:]) if path.name == "__init__.py" else path.name
