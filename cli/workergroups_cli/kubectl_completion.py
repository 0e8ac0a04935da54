"""`kubectl_complete-workergroups`: what kubectl runs to complete the words after `kubectl workergroups`."""

from __future__ import annotations

import io
import os
import shlex
import sys
from contextlib import redirect_stdout, suppress

from .app import app

_NAME = "workergroups"
# What the shell does with the words: it completes names of files if there are none, else it does not.
_FILES, _NO_FILES = 0, 4


def main() -> None:
    """Print a line for each word that fits, and then what the shell does with them, as kubectl expects it."""
    words = [_NAME, *sys.argv[1:]]
    # typer's own completion, which reads the line from variables and prints the words.
    os.environ |= {
        "_WORKERGROUPS_COMPLETE": "complete_bash",
        "COMP_WORDS": shlex.join(words),
        "COMP_CWORD": str(len(words) - 1),
    }
    printed = io.StringIO()
    with redirect_stdout(printed), suppress(SystemExit):
        app(prog_name=_NAME)
    found = printed.getvalue().split()
    print(*found, f":{_NO_FILES if found else _FILES}", sep="\n")
