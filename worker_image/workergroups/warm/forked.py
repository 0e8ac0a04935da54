"""A fork of a fork server, on its way to be the process that Ray has started."""

from __future__ import annotations

import contextlib
import importlib
import os
import runpy
import signal
import socket
import sys
import traceback
from collections.abc import Mapping, Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any, NamedTuple

from . import client, places


def search_path(program: str, path: Sequence[str], old_code: str, code: str | None) -> list[str]:
    """Return where a new interpreter that runs the program looks for modules.

    Args:
        program: The path of a Python file.
        path: Where the server's interpreter looked when it started.
        old_code: The directory of the code then; empty if there was none.
        code: The directory of the code now; ``None`` to leave it out.
    """
    first = [] if getattr(sys.flags, "safe_path", False) else [str(Path(program).parent)]
    replaced = [code if each == old_code else each for each in path]
    return list(dict.fromkeys([*first, *filter(None, replaced)]))


def has_at_start(code: str) -> bool:
    """Return whether interpreters run code of that directory when they start."""
    return bool(code) and any(PathFinder.find_spec(name, [code]) for name in places.AT_START)


class Traces(NamedTuple):
    """What the server's imports leave behind in a process, apart from the modules."""

    variables: Mapping[str, str | None]
    """The variables that they have set; ``None`` for those that they have removed."""
    paths: Sequence[str]
    """What they have put into the search path: Ray puts a directory of its own first."""


class Fork:
    """What a fork must become: the process of a client, with its variables, directory and standard streams."""

    def __init__(self, message: Mapping[str, Any], streams: Sequence[int]) -> None:
        """Read a client's message, as `client.forked_instead` sends it, and the descriptors that came with it.

        Raises:
            KeyError: The message lacks something.
        """
        self.pid: int = message["pid"]
        self._command: list[str] = message["command"]
        self._environment: dict[str, str] = message["environment"]
        self._directory: str = message["directory"]
        self._streams, more = streams[:3], streams[3:]
        if more:  # the client's number of it is in the command
            self._command[-1] = f"{self._command[-1].partition('=')[0]}={more[0]}"
        self.program = self._command[1]
        self.code, _ = places.python_path(self._environment)
        self.search_path: Sequence[str] = ()
        """Where it looks for modules."""
        self.traces = Traces({}, ())

    def shadowed(self) -> str | None:
        """Return why the code would give the process another module than one that the server has imported."""
        if not self.code:
            return None
        if has_at_start(self.code):
            return f"{self.code} has code that interpreters run when they start"
        importlib.invalidate_caches()
        imported = {name for name in sys.modules if "." not in name and name != "__main__"}
        found = next((name for name in sorted(imported) if PathFinder.find_spec(name, [self.code])), None)
        return found and f"{self.code} has a module {found} of its own"

    def take_over(self, client_socket: socket.socket) -> None:
        """Take the place of the client's process, unless it has lost patience or this process cannot be like it."""
        try:
            self._be_like_process(self.pid)
            self._be_like_new_interpreter()
            client_socket.sendall(client.READY)
            if client_socket.recv(1) != client.GO:
                os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        client_socket.close()
        for number, stream in enumerate(self._streams):
            os.dup2(stream, number)
            os.close(stream)

    def _be_like_process(self, pid: int) -> None:
        """Take over what a process inherits from the raylet, while the client lives."""
        os.chdir(self._directory)
        if os.getpgid(pid) == pid:
            os.setpgid(0, 0)
        os.sched_setaffinity(0, os.sched_getaffinity(pid))
        with contextlib.suppress(OSError):  # a higher priority than the rank's from which the server comes
            os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, pid))
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)

    def _be_like_new_interpreter(self) -> None:
        places.started_with(self._environment)
        os.environ.clear()
        os.environ.update(self._environment)
        for name, value in self.traces.variables.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        sys.argv = self._command[1:]
        sys.path[:] = [*self.traces.paths, *self.search_path]
        sys.path_importer_cache.clear()
        _seed()

    def run(self) -> None:
        """Run the program."""
        runpy.run_path(self.program, run_name="__main__")


def _seed() -> None:
    """Give this fork random numbers of its own, as a new process has them. Python's `random` has seeded itself."""
    if (numpy_random := sys.modules.get("numpy.random")) is not None:
        numpy_random.seed()
    if (torch := sys.modules.get("torch")) is not None:
        torch.default_generator.seed()  # those of devices are created when they are first used
