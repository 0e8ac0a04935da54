"""A fork server: `learning` starts one for a group on a node.

It imports what the group's ranks have imported, and then forks whenever `setup_worker` asks. It ends with the raylet,
if memory becomes short, if another server takes its socket, or if no rank of the group has run for a while. Whatever
goes wrong, the ranks start cold.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from workergroups.node.free_memory import memory
from workergroups.node.idle import wait_for_idle_cpu
from workergroups.node.own_processes import runs
from workergroups_api.vocabulary import VISIBLE_DEVICES_ENV

from . import client, forked, places
from .preload import changed, other_threads, preload, problem, site_directories

# How long the server stays without a rank of its group. The operator may wait for minutes before it restarts one.
KEEP_SECONDS = 300
LOOK_SECONDS = 1.0
RESERVE_BYTES = 2**30
"""What must be free so that the server stays, or a tenth of the limit if that is more."""
IMPORT_BYTES = 2**30
"""What must be free beyond that before it imports."""
# If a process with everything imported is not fit, these alone may be: they are most of the time.
BASIC = ("ray", "workergroups", "workergroups_api", "workergroups_common", "numpy", "torch")
# Ray sets these in each process itself, before the user's code is imported.
_RAYS_OWN = ("OMP_NUM_THREADS", "PYTHONBREAKPOINT", *VISIBLE_DEVICES_ENV)


def main() -> None:
    """Run the fork server that standard input describes, or in a fork of it, a worker of Ray."""
    order: dict[str, Any] = json.load(sys.stdin)
    path = list(sys.path)
    if os.fork():
        os._exit(0)  # so that it is no child of the rank, which may use `os.wait`
    os.ftruncate(order["lock"], 0)
    os.pwrite(order["lock"], str(os.getpid()).encode(), 0)
    say(f"waits for an idle CPU, to import {len(order['modules'])} modules for {order['directory']}")
    _wait_for_idle_cpu(order["raylet"], order["patience"])
    if is_memory_short(IMPORT_BYTES):
        _end("there is too little memory")
    server = Server(order, path, _import(order, path))
    while (process := server.next_fork()) is None:
        pass
    process.run()


def say(text: str) -> None:
    """Print a line into the server's log."""
    print(f"fork server {os.getpid()}: {text}", flush=True)


def is_memory_short(wanted: int = 0) -> bool:
    """Return whether less is free than a server needs, and this many bytes more."""
    now = memory()
    return now.free < max(RESERVE_BYTES, now.limit // 10) + wanted


def _wait_for_idle_cpu(raylet: int, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not wait_for_idle_cpu(LOOK_SECONDS):
        if not runs(raylet):
            _end("the raylet is gone")


def _import(order: dict[str, Any], path: Sequence[str]) -> forked.Traces:
    """Import the modules, none of which is the code's, with a search path; return what they leave behind."""
    before = dict(os.environ)
    searched = sys.path[:] = forked.search_path(order["program"], path, order["code"], None)
    given: Mapping[str, str] = order["variables"]
    assumed = {name: given[name] for name in ("OMP_NUM_THREADS", *order.get("assumed", ())) if name in given}
    os.environ.update(assumed)
    written = preload(order["modules"])
    why = problem()
    if why is None and "PYTHONPATH" in written:
        why = "it sets PYTHONPATH"
    if why is not None:
        _retry_with_less(order, why)
    # What else the rank has set, the user's code did, perhaps before its imports: they may depend on it.
    own = sorted(
        name
        for name in changed(os.environ, given)
        if name not in (*_RAYS_OWN, "PYTHONPATH") and not name.startswith("RAY_")
    )
    if own and "assumed" not in order:
        say(f"imports again with the variables that the code sets itself: {', '.join(own)}")
        _restart(order | {"assumed": own})
    return forked.Traces(
        {name: os.environ.get(name) for name in written - assumed.keys() if before.get(name) != os.environ.get(name)},
        [each for each in sys.path if each not in searched],
    )


def _retry_with_less(order: dict[str, Any], why: str) -> NoReturn:
    basic = [name for name in order["modules"] if name.partition(".")[0] in BASIC]
    if basic == order["modules"]:
        Path(order["directory"], places.UNFIT).touch()
        _end(f"cannot be forked: {why}")
    say(f"cannot be forked: {why}; imports only {', '.join(BASIC)}")
    _restart(order | {"modules": basic})


def _restart(order: Mapping[str, Any]) -> NoReturn:
    """Become a new interpreter with another order."""
    text = os.memfd_create("order")
    os.write(text, json.dumps(order).encode())
    os.lseek(text, 0, os.SEEK_SET)
    os.dup2(text, 0)
    os.environ.clear()
    os.environ.update(places.environment_at_start())
    os.execv(sys.executable, sys.orig_argv)


def _end(why: str) -> NoReturn:
    say(f"ends: {why}")
    os._exit(0)  # not the exit handlers of what it has imported


class Server:
    """A process that has imported everything, and forks."""

    def __init__(self, order: Mapping[str, Any], path: Sequence[str], traces: forked.Traces) -> None:
        self._code: str = order["code"]
        self._search_path = path
        self._traces = traces
        self._assumed = bool(order.get("assumed"))
        self._installed = _stamps()
        self._directory = Path(order["directory"])
        self._socket = self._directory / places.SOCKET
        self._lock: int = order["lock"]
        self._raylet: int = order["raylet"]
        self._looks_alone = 0
        self._listener = self._listen()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel buries its forks
        gc.collect()
        gc.freeze()  # so that a collection in a fork does not copy every page
        say("is ready")

    def next_fork(self) -> forked.Fork | None:
        """Serve a client, if one comes soon; return what to become in a new fork, ``None`` in the server."""
        try:
            client_socket, _ = self._listener.accept()
        except TimeoutError:
            self._look()
            return None
        with client_socket:
            return self._answer(client_socket)

    def _listen(self) -> socket.socket:
        """Listen. Other servers of the group have other variables, so they are of no more use."""
        self._socket.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(str(self._socket))
        listener.listen(128)
        listener.settimeout(LOOK_SECONDS)
        for other in self._directory.parent.iterdir():
            if other != self._directory:
                (other / places.SOCKET).unlink(missing_ok=True)
        return listener

    def _look(self) -> None:
        """End if there is a reason to."""
        self._looks_alone = 0 if self._has_ranks() else self._looks_alone + 1
        if not runs(self._raylet):
            self._leave("the raylet is gone")
        if not self._socket.exists():
            self._leave("another server has taken its place")
        if self._looks_alone * LOOK_SECONDS > KEEP_SECONDS:
            self._leave("the group has no ranks on this node")
        if is_memory_short():
            self._leave("there is too little memory")

    def _has_ranks(self) -> bool:
        files = list((self._directory / places.RANKS).iterdir())
        for gone in (file for file in files if not runs(file.name)):
            gone.unlink(missing_ok=True)
        return any(runs(file.name) for file in files)

    def _leave(self, why: str) -> NoReturn:
        shutil.rmtree(self._directory, ignore_errors=True)
        for parent in list(self._directory.parents)[:2]:  # of the group and of the raylet, if they are empty
            with contextlib.suppress(OSError):
                parent.rmdir()
        _end(why)

    def _answer(self, client_socket: socket.socket) -> forked.Fork | None:
        client_socket.settimeout(client.SECONDS)
        try:
            message, streams = client.receive(client_socket)
            process = forked.Fork(message, streams)
        except (OSError, ValueError, LookupError, TypeError) as error:
            say(f"does not understand a client: {type(error).__name__}: {error}")
            return None
        why = self._refusal(process)
        if why is not None:
            say(f"does not fork for process {process.pid}: {why}")
        elif os.fork() == 0:
            self._become(process, client_socket)
            return process
        for each in streams:
            os.close(each)
        return None

    def _become(self, process: forked.Fork, client_socket: socket.socket) -> None:
        """In a fork: be no server any more."""
        self._listener.close()
        os.close(self._lock)
        process.search_path = forked.search_path(process.program, self._search_path, self._code, process.code)
        process.traces = self._traces
        process.take_over(client_socket)

    def _refusal(self, process: forked.Fork) -> str | None:
        """Return why this process must start cold."""
        if threads := other_threads():
            return f"the server has threads: {', '.join(threads)}"
        if _stamps() != self._installed:
            self._leave("packages were installed or removed")
        if self._assumed and process.code != self._code:
            self._leave("the code has changed, and sets variables that the server's imports may have read")
        return process.shadowed()


def _stamps() -> dict[str, int]:
    """Return when the directories of installed packages changed last."""
    stamps = {}
    for directory in site_directories():
        with contextlib.suppress(OSError):
            stamps[directory] = os.stat(directory).st_mtime_ns
    return stamps
