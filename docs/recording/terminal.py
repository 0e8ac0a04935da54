"""Runs commands in their own terminal, and keeps what they write, and when."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterable, Iterator

COLUMNS, LINES = 100, 28
Output = tuple[float, bytes]
"""Seconds since the start, and what was written."""


def record(commands: Iterable[str]) -> list[Output]:
    """Run one command after the other in a shell; return what a person would have seen.

    Raises:
        SystemExit: A command failed; the message has its last output.
    """
    outputs: list[Output] = []
    started = time.monotonic()
    for command in commands:
        outputs.append((time.monotonic() - started, f"\x1b[1m$ {command}\x1b[0m\r\n".encode()))
        outputs += [(time.monotonic() - started, data) for data in _run(command)]
    return outputs


def _run(command: str) -> Iterator[bytes]:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(COLUMNS), "LINES": str(LINES)}
    process = subprocess.Popen(
        command, shell=True, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True
    )
    os.close(theirs)
    last = b""
    while data := _read(ours):
        last = data
        yield data
    os.close(ours)
    if process.wait():
        sys.exit(
            f"`{command}` ended with {process.returncode}, so nothing was written: {last.decode(errors='replace')}"
        )


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux reports so that the other side is closed
        return b""
