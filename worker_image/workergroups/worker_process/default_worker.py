"""Run Ray's `default_worker.py`, in a process that other programs of its node can ask for its Python stacks.

The raylet runs this for each worker process: plain actors, tasks and ranks. Until a request comes, there are two signal
handlers and a hook for `breakpoint()`: no thread, no open file, and no module that Ray would not import. So it imports
nothing of ours: the interpreter may be one of a runtime environment, which lacks the library's directory.

`workergroups.processes.stack_dump` sends the signals. This file must have the name of Ray's, by which `ray stop` finds
workers.
"""

import faulthandler
import fcntl
import os
import runpy
import signal
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

FILE_NAME = "workergroups-stacks-"
"""The name of the file in memory to which a process writes its stacks."""
STARTED = "--workergroups-started="
"""The last argument, if a process waits until Ray knows this one: the descriptor by which to tell it."""
_LIBRARY = str(Path(__file__).resolve().parents[2])


def signals() -> tuple[int, int]:
    """Return the signals that make a process write its stacks, and open a file for them.

    Real-time signals, since programs have their own use for the others: a Java VM for SIGUSR2.
    """
    return signal.SIGRTMIN + 10, signal.SIGRTMIN + 11


def answer() -> None:
    """Let other processes of this node ask this one for its stacks."""
    dump, open_file = signals()
    # A main thread in C code runs no Python, and so opens no file: then it writes to its log, as a Java VM does.
    faulthandler.register(dump, file=2, all_threads=True, chain=False)
    signal.signal(open_file, _open_once)


def _open_once(number: int, _: Any) -> None:
    signal.signal(number, signal.SIG_IGN)
    write_to_memory("")


def write_to_memory(name: str) -> None:
    """Write stacks to a file in memory from now on, where they disturb no log."""
    file = os.memfd_create(FILE_NAME + name)
    faulthandler.register(signals()[0], file=file, all_threads=True, chain=False)
    # Readers empty the file before each dump, so each write must go to the file's current end. This comes last: by it,
    # they see that stacks go there now.
    fcntl.fcntl(file, fcntl.F_SETFL, os.O_APPEND)


def stop_here(*_arguments: Any, **_named: Any) -> None:
    """Pause at a `breakpoint()` for a debugger on the pod's loopback; Ray's own debugger listens to all pods."""
    frame = sys._getframe(1)
    if find_spec("workergroups") is None:
        sys.path.append(_LIBRARY)
    from workergroups.debugger import stopping

    stopping.stop(frame)


def announce(descriptor: int) -> None:
    """Announce that Ray knows this process when it begins to work for Ray; with an unknown Ray, at once."""
    from ray._private.worker import Worker

    main_loop = getattr(Worker, "main_loop", None)

    def tell() -> None:
        with suppress(OSError):  # the caller may be gone
            os.write(descriptor, b".")
        os.close(descriptor)

    def begin(worker: Any) -> Any:
        Worker.main_loop = main_loop
        tell()
        return worker.main_loop

    if main_loop is None:
        tell()
    else:
        Worker.main_loop = property(begin)  # unlike a function, it leaves no frame in later stacks


def main() -> None:
    """Become the worker."""
    started = sys.argv.pop().removeprefix(STARTED) if sys.argv[-1].startswith(STARTED) else None
    answer()
    sys.breakpointhook = stop_here
    ray = find_spec("ray")
    assert ray is not None
    assert ray.origin is not None
    theirs = Path(ray.origin).parent / "_private/workers/default_worker.py"
    own = str(Path(__file__).parent)
    sys.path[:] = [str(theirs.parent) if each == own else each for each in sys.path]
    sys.argv[0] = str(theirs)
    if started is not None:
        announce(int(started))
    if os.environ.get("WORKERGROUPS_START_FAILED"):
        from workergroups.ray_private import failed_start

        failed_start.run_nothing()
    runpy.run_path(str(theirs), run_name="__main__")


if __name__ == "__main__":
    main()
