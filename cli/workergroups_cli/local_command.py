"""Run a command on this machine while a tunnel is held for it."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence

from .exit_codes import CANNOT_EXECUTE, COMMAND_NOT_FOUND
from .output import note
from .signals import on


def run(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a command with more variables; return its exit code as a shell would."""
    try:
        child = subprocess.Popen(command, env={**os.environ, **environment})
    except FileNotFoundError:
        note(f"{command[0]}: command not found on this machine")
        return COMMAND_NOT_FOUND
    except OSError as error:  # such as of a script without the line that names its interpreter
        note(f"{command[0]}: cannot be executed: {error.strerror}")
        return CANNOT_EXECUTE
    # The terminal sends Ctrl-C to the command as well, which may continue, as a prompt does.
    with on(signal.SIGINT, lambda: None), on(signal.SIGTERM, child.terminate):
        code = child.wait()
    return 128 - code if code < 0 else code
