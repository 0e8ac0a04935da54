"""The cluster's daemons: started by name with a log and a recorded process id, and stopped only by that id."""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from tools.console import ToolError, tail, wait_until
from tools.local_cluster import cgroups
from tools.local_cluster.layout import LOGS, STATE

_PIDS = STATE / "pids"


def start(name: str, argv: Sequence[str | Path], *, env: dict[str, str] | None = None) -> None:
    """Start a daemon in its own session, so that it outlives the shell that started the cluster."""
    _PIDS.mkdir(parents=True, exist_ok=True)
    LOGS.mkdir(parents=True, exist_ok=True)
    with log(name).open("a") as output:
        child = subprocess.Popen(
            [str(word) for word in argv],
            env={**os.environ, **(env or {})},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    cgroups.adopt(child.pid)
    record = {"pid": child.pid, "started": _start_time(child.pid)}
    (_PIDS / name).write_text(json.dumps(record))


def log(name: str) -> Path:
    """Return the path of a daemon's log."""
    return LOGS / f"{name}.log"


def names() -> list[str]:
    """Return the names of the daemons that were started, whether they run or not."""
    return sorted(path.name for path in _PIDS.glob("*"))


def pid(name: str) -> int | None:
    """Return the process id of a running daemon. Its start time distinguishes it from a later process with this id."""
    with suppress(FileNotFoundError, ValueError):
        record = json.loads((_PIDS / name).read_text())
        if _start_time(record["pid"]) == record["started"]:
            return int(record["pid"])
    return None


def stop(name: str) -> None:
    """Ask a daemon to end, and kill it if it does not. Ignore a daemon that does not run."""
    running = pid(name)
    if running is not None:
        os.kill(running, signal.SIGTERM)
        try:
            wait_until(f"{name} to end", lambda: pid(name) is None, seconds=5)
        except ToolError:
            os.kill(running, signal.SIGKILL)
    (_PIDS / name).unlink(missing_ok=True)


def wait_for(name: str, what: str, check: Callable[[], bool], *, seconds: float) -> None:
    """Wait for something that a daemon must do; if it ends or is too late, show its log."""

    def still_possible() -> bool:
        if pid(name) is None:
            raise ToolError(f"{name} ended before: {what}")
        return check()

    try:
        wait_until(what, still_possible, seconds=seconds)
    except ToolError as error:
        raise ToolError(f"{error}\n{tail(log(name))}") from None


def _start_time(process: int) -> int | None:
    """Return when a process started, in clock ticks since the boot; None if it has ended."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] == "Z" else int(fields[19])
