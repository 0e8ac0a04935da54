"""Files that a job's command names, and that only this machine has."""

from __future__ import annotations

import os
from collections.abc import Sequence

from .output import note


def note_missing_files(command: Sequence[str], *, has_working_dir: bool) -> None:
    """Say that a job gets no files if its command names one of this directory: it would not find that file."""
    if has_working_dir:
        return
    for word in command:
        # The pool's image may have an absolute path, too.
        if os.path.isfile(word) and not os.path.isabs(word):
            note(f"the job gets no files of this machine, such as {word}: to send this directory, add --working-dir .")
            return
