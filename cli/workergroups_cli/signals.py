"""Handle signals: for the duration of a block, or so that keys do not stay in files."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


@contextmanager
def on(number: signal.Signals, act: Callable[[], object]) -> Iterator[None]:
    """Call ``act`` at the signal during the block, and restore the former handler afterwards."""
    before = signal.signal(number, lambda *_: act())
    try:
        yield
    finally:
        signal.signal(number, before)


def leave_no_files() -> None:
    """Remove the files with keys also if ``timeout``, or a terminal that is closed, ends the command."""
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:  # nohup has SIGHUP ignored
            signal.signal(number, lambda number, _: end_by(number))


def end_by(number: int) -> None:
    """End as the signal ends a program by default: Python's exit handlers do not run, and no thread is waited for."""
    with suppress(ImportError):  # while this is being imported, there is no file yet
        # --help must not wait for what only a request needs.
        from workergroups_client.api_server.kubeconfig import remove_files

        remove_files()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
