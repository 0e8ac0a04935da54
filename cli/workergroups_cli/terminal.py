"""Pass this machine's input and terminal on to a command in a pod."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator

from .output import note
from .signals import end_by, on

_AT_ONCE = 1 << 15


def attended(run: Callable[..., int], *, tty: bool) -> int:
    """Run a command with this command's input; with ``tty``, on this terminal.

    Args:
        run: Takes ``stdin`` and ``size`` as `workergroups_client.api_server.execution.execute` does.
        tty: Whether the command gets a terminal, if this one has one.
    """
    if tty and not sys.stdin.isatty():
        note("the standard input is not a terminal, so the command gets none")
        tty = False
    if not tty:
        return run(stdin=_read)
    with _every_key_passed_on():
        return run(stdin=_read, size=_size)


def _read() -> bytes:
    try:
        return os.read(sys.stdin.fileno(), _AT_ONCE)
    except OSError:  # the input is closed, or its terminal is gone
        return b""


def _size() -> os.terminal_size:
    return os.get_terminal_size(sys.stdin.fileno())


@contextlib.contextmanager
def _every_key_passed_on() -> Iterator[None]:
    """Pass keys such as Ctrl-C and Ctrl-Z on to the other command, and restore the terminal afterwards."""
    import termios  # not on Windows
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)

    def restore() -> None:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)

    def end() -> None:
        restore()
        end_by(signal.SIGTERM)

    with on(signal.SIGTERM, end):
        tty.setraw(descriptor)
        try:
            yield
        finally:
            restore()
