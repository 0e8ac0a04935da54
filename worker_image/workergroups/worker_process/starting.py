"""Stand by while a process becomes a worker of Ray, and explain it to Ray if it cannot: for `setup_worker`.

What users give their processes can keep an interpreter from starting: variables of the interpreter and of the loader, a
`sitecustomize`, modules that hide Python's or Ray's. Ray learns nothing of it: it waits for a minute, and then tries
again. So another process stands by, which has nothing of the user's. If the first one ends before Ray knows it, the
second starts the worker once more, as its child, whose exit status and last lines it gets. If that ends, too, it
becomes the worker itself, without the user's surroundings. As such it runs nothing, and reports why: `failed_start`.

This needs only the standard library: the interpreter that runs it has not imported Ray.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from workergroups.node import own_processes
from workergroups.ray_private import worker_logs
from workergroups.warm import places
from workergroups_api.vocabulary import Variable

from . import default_worker

SECONDS = 50.0
"""How long a process may take until Ray knows it, a second try included. Ray gives up after 60 s."""
LATE = f"Ray did not know it after {SECONDS:g} s"
"""The reason of a process that did not end, but took too long: the next one may be faster."""
_LOOK_SECONDS = 1.0
# Its import of Ray must not slow the processes that can start.
_NICER = 4
_WORKER_ID = "--worker-id="
_WORKER_TYPE = "--worker-type="
_READ_BYTES = 64 * 1024
_SHOWN_SUSPECTS = 5
_SHOWN_LINES = 8
_SHOWN_CHARACTERS = 600
# What interpreters, loaders and Ray read; each process with code has a PYTHONPATH.
_READ_AT_START = re.compile("LD_|RAY_|PYTHON(?!PATH$)")
# Frames of C, such as those that follow Ray's own message.
_FRAME = re.compile(r" \[0x[0-9a-f]+\]")


def stand_by(command: Sequence[str], set_variables: Callable[[], object]) -> int | None:
    """Let another process stand by while this one becomes the worker; return the descriptor for its announcement.

    Args:
        command: The command line of the worker.
        set_variables: Sets the worker's variables in the process that calls it.

    Returns:
        ``None`` if no process stands by: the worker would not announce anything, or there can be no more processes.
    """
    if not _announces(command):
        return None
    reader, writer = os.pipe()
    worker, begin, leads = os.getpid(), own_processes.read(os.getpid()).start, os.getpgid(0) == os.getpid()
    try:
        child = os.fork()
    except OSError:
        return None
    if child == 0:
        try:
            os.close(writer)
            if os.fork() == 0:  # so that the worker has no child
                if leads:
                    os.setpgid(0, 0)
                _watch(_Process(worker, begin), reader, command, set_variables)
        finally:
            os._exit(0)
    os.close(reader)
    os.waitpid(child, 0)
    return writer


def announcing(command: Sequence[str], announcement: int | None) -> list[str]:
    """Return the command line with the descriptor through which the worker announces that Ray knows it."""
    if announcement is None:
        return [*command]
    os.set_inheritable(announcement, True)
    return [*command, f"{default_worker.STARTED}{announcement}"]


def _announces(command: Sequence[str]) -> bool:
    """Return whether a worker with this command line announces that Ray knows it."""
    kinds = {each for each in command if each.startswith(_WORKER_TYPE)}
    return command[1] == default_worker.__file__ and kinds <= {f"{_WORKER_TYPE}WORKER"}


class _Process(NamedTuple):
    """A process, which another one may follow that gets its id."""

    pid: int
    begin: int


class _Failure(NamedTuple):
    """Why Ray does not know a worker, and what the worker has complained about last."""

    how: str
    said: str


_LATE = _Failure(LATE, "see raylet.err in /tmp/ray/session_latest/logs there")


def _watch(worker: _Process, announcement: int, command: Sequence[str], set_variables: Callable[[], object]) -> None:
    """Return when Ray knows the worker, or become the worker that reports why Ray does not."""
    deadline = time.monotonic() + SECONDS
    heard = _hear(announcement, deadline)
    if not heard:
        _kill(worker)
        failure = _LATE if heard is None else _try_again(deadline, command, set_variables)
        if failure is not None and _ray_runs():
            _explain(failure, command, set_variables)


def _hear(announcement: int, deadline: float) -> bytes | None:
    """Return what a worker announces: nothing if it has ended, ``None`` if it does neither in time or Ray ends."""
    while time.monotonic() < deadline and _ray_runs():
        if select.select([announcement], [], [], _LOOK_SECONDS)[0]:
            return os.read(announcement, 1)
    return None


def _ray_runs() -> bool:
    return own_processes.runs(os.environ["RAY_RAYLET_PID"])


def _kill(process: _Process) -> None:
    with contextlib.suppress(OSError):
        if own_processes.read(process.pid).start == process.begin:
            os.kill(process.pid, signal.SIGKILL)


def _try_again(deadline: float, command: Sequence[str], set_variables: Callable[[], object]) -> _Failure | None:
    """Start the worker as a child; return why it has ended before Ray knew it, ``None`` if Ray knows it."""
    reader, writer = os.pipe()
    complaints = os.memfd_create("workergroups-start")
    if (child := os.fork()) == 0:
        os.dup2(complaints, 2)
        try:
            set_variables()
            os.execv(sys.executable, announcing(command, writer))
        except BaseException:
            traceback.print_exc()
        os._exit(1)
    os.close(writer)
    heard = _hear(reader, deadline)
    if heard:
        return None
    os.kill(child, signal.SIGKILL)  # its exit status stays the same if it has ended
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
    said = _last_lines(complaints, command) or "none"
    return _Failure(LATE if heard is None else f"it ended with {how} before Ray knew it", said)


def _last_lines(complaints: int, command: Sequence[str]) -> str:
    """Return the end of what a process has complained about: in this file or, once Ray redirects that, in its log."""
    text = os.pread(complaints, _READ_BYTES, max(0, os.fstat(complaints).st_size - _READ_BYTES))
    worker = next((each.removeprefix(_WORKER_ID) for each in command if each.startswith(_WORKER_ID)), None)
    if not text and worker is not None:
        text = worker_logs.last_lines(worker) or b""
    lines = text.replace(b"\0", b"").decode(errors="replace").splitlines()
    shown = [line for line in lines if not _FRAME.search(line)][-_SHOWN_LINES:]
    return " ".join(" ".join(shown).split())[-_SHOWN_CHARACTERS:]


def _explain(failure: _Failure, command: Sequence[str], set_variables: Callable[[], object]) -> None:
    """Become the worker, with nothing of the user's but the reason why there is no other."""
    own = dict(os.environ)
    set_variables()
    os.nice(_NICER)
    why = f"{failure.how}; {_suspects(own, os.environ)}its last lines: {failure.said}"
    os.execve(sys.executable, [*command], own | {Variable.START_FAILED.value: why})


def _suspects(own: Mapping[str, str], environment: Mapping[str, str]) -> str:
    """Name what a process of Ray reads when it starts: variables that this process lacks, and modules of the code."""
    found = sorted(name for name in environment if environment[name] != own.get(name) and _READ_AT_START.match(name))
    code, _ = places.python_path(environment)
    modules = {path.stem for path in Path(code).glob("*")} if code else set()
    found += [f"{code}/{name}" for name in sorted(modules & {*sys.stdlib_module_names, *places.AT_START})]
    return f"it reads these of yours when it starts: {', '.join(found[:_SHOWN_SUSPECTS])}; " if found else ""
