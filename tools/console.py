"""Progress lines, commands and waiting: everything that a person at the terminal sees."""

import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
_STARTED = time.monotonic()
_TAIL_LINES = 40


class ToolError(Exception):
    """A failure that the user must know about; its text is the whole message, without a traceback."""


def say(message: str) -> None:
    """Print one progress line, with the seconds since the start. Standard output stays free for results."""
    print(f"[{time.monotonic() - _STARTED:6.1f}s] {message}", file=sys.stderr, flush=True)


def end_when_told() -> None:
    """Let SIGTERM end this process by an exception, as Ctrl-C does, so that it takes away what it has started."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


def run(
    argv: Sequence[str | Path],
    env: Mapping[str, str] | None = None,
    *,
    cwd: Path = REPOSITORY,
    stdin: str | None = None,
    show_progress: bool = False,
) -> str:
    """Run a command and return what it wrote to standard output.

    What it writes to standard error goes to the terminal if asked to.

    Raises:
        ToolError: The command does not exist or failed; the message has the end of its output.
    """
    command = [str(word) for word in argv]
    try:
        done = subprocess.run(
            command,
            env={**os.environ, **(env or {})},
            cwd=cwd,
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=None if show_progress else subprocess.PIPE,
            text=True,
        )
    except FileNotFoundError:
        raise ToolError(f"there is no {command[0]} on this machine: install it and put it on PATH") from None
    if done.returncode != 0:
        output = _last_lines(done.stdout + (done.stderr or ""))
        raise ToolError(f"`{' '.join(command)}` exited {done.returncode}:\n{output}".rstrip())
    return done.stdout


def run_logged(argv: Sequence[str | Path], log: Path, *, env: Mapping[str, str] | None = None) -> None:
    """Run a long command with its output in a file, and show the file's end only if the command fails."""
    log.parent.mkdir(parents=True, exist_ok=True)
    command = [str(word) for word in argv]
    with log.open("w") as output:
        done = subprocess.run(
            command,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    if done.returncode != 0:
        raise ToolError(f"`{' '.join(command)}` exited {done.returncode}\n{tail(log)}")


def tail(log: Path) -> str:
    """Return the path of a log and its last lines, for a message."""
    return f"--- the end of {log}:\n{_last_lines(log.read_text(errors='replace'))}"


def _last_lines(text: str) -> str:
    return "\n".join(text.rstrip().splitlines()[-_TAIL_LINES:])


def wait_until(what: str, check: Callable[[], bool], *, seconds: float) -> None:
    """Poll until `check` holds.

    Raises:
        ToolError: The deadline passed, or the check itself found that waiting does not help.
    """
    deadline = time.monotonic() + seconds
    while not check():
        if time.monotonic() > deadline:
            raise ToolError(f"{what}: not within {seconds:.0f} s")
        time.sleep(0.1)


def answers(url: str) -> bool:
    """Return whether an address of the cluster answers 200, without a proxy."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=2) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False
