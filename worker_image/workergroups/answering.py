"""Answers of programs in pods to programs outside the cluster, on a channel with no other writer.

Ray, the image and the user's ``sitecustomize`` may print at any time. So the shell that starts the program sets the
channel aside before Python starts: everything printed goes to the standard error, and the answer to the shell's
standard output. Failures take the same channel, since others also write to the standard error.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from workergroups.stacks.exception_text import exception_line

ANSWER, FAILURE = "answer", "failure"
_VARIABLE = "WORKERGROUPS_ANSWER_CHANNEL"
_START = f'{_VARIABLE}=3 exec python3 -m "$@" 3>&1 1>&2'


def answer_command(module: str, words: Sequence[str]) -> list[str]:
    """Return the command line that runs a module that calls `give`, and prints nothing but the answer."""
    return ["sh", "-c", _START, "sh", module, *words]


def give(answer: Callable[..., Any], *words: str) -> None:
    """Write what a function returns, or why it failed, as one JSON object to the answer's channel.

    Without a channel, as in a person's shell, the answer goes to the standard output.

    Raises:
        SystemExit: The function failed; its traceback has been printed.
    """
    try:
        said = {ANSWER: answer(*words)}
    except Exception as error:
        traceback.print_exc()
        said = {FAILURE: _why(error)}
    text = json.dumps(said)
    with os.fdopen(int(os.environ.get(_VARIABLE, "1")), "w", encoding="ascii", closefd=False) as channel:
        channel.write(text)
    if FAILURE in said:
        sys.exit(1)


def _why(error: Exception) -> str:
    """Return the exception's last line; of our own errors, what they say, which needs no name of a class."""
    is_own = type(error).__module__.partition(".")[0] == "workergroups"
    return exception_line(str(error) if is_own else "".join(traceback.format_exception_only(type(error), error)))
