"""Import modules in a fork server, and judge whether its forks are as good as new processes."""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import site
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from itertools import filterfalse
from pathlib import Path

# Whatever else a process has open is not for two processes to use: sockets, pipes, devices.
# When they are imported, these draw from Ray's generator of random ids, and their forks would all draw the same ids.
_DRAWS_IDS = re.compile(r"ray\.(dag|experimental\.channel)(\.|$)")
_HARMLESS = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/shm/")


def preload(modules: Iterable[str]) -> set[str]:
    """Import modules, as far as they can be imported; return the names of the variables that they set or remove."""
    written: set[str] = set()
    with _noting_variables(written):
        for name in filterfalse(_DRAWS_IDS.match, modules):
            # A module may need something of the process that imported it first. The forks import it when they need it.
            with contextlib.suppress(Exception, SystemExit):
                importlib.import_module(name)
    return written


@contextlib.contextmanager
def _noting_variables(written: set[str]) -> Iterator[None]:
    """Note the names of the variables that are set or removed; `os.environ` calls these functions of `os` for it."""
    put, unset = os.putenv, os.unsetenv

    def noting_put(name: bytes, value: bytes) -> None:
        written.add(os.fsdecode(name))
        put(name, value)

    def noting_unset(name: bytes) -> None:
        written.add(os.fsdecode(name))
        unset(name)

    os.putenv, os.unsetenv = noting_put, noting_unset  # type: ignore[assignment]
    try:
        yield
    finally:
        os.putenv, os.unsetenv = put, unset


def site_directories() -> list[str]:
    """Return the directories of installed packages, also those of another environment that Python was pointed to.

    A .pth file or PYTHONPATH does that, for example with an environment on a volume.
    """
    paths = sysconfig.get_paths()
    found = [paths["purelib"], paths["platlib"], *site.getsitepackages(), site.getusersitepackages()]
    others = [each for each in sys.path if Path(each).name in ("site-packages", "dist-packages")]
    return list(dict.fromkeys([*found, *others]))


def changed(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that are new or have another value."""
    return {name: value for name, value in after.items() if before.get(name) != value}


def problem() -> str | None:
    """Return why a fork of this process could differ from a new process, ``None`` if nothing speaks against it."""
    # Before a fork, libraries such as OpenBLAS end their idle threads (pthread_atfork), and start them when needed.
    has_own_ids = _id_in_a_fork() != _id_in_a_fork()
    if threads := other_threads():
        return f"it has threads: {', '.join(threads)}"
    if opened := sorted(filter(_is_shared, descriptors(os.getpid()).values())):
        return f"it has open {', '.join(opened)}"
    if not has_own_ids:
        return "its forks would draw the same random ids of Ray"
    if _has_children():
        return "it has child processes"
    cuda = sys.modules.get("torch.cuda")
    return "it has initialised CUDA" if cuda is not None and cuda.is_initialized() else None


def other_threads() -> list[str]:
    """Return the names of all threads of this process but the main one."""
    main = str(os.getpid())
    found = []
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):
            # A name may be cut within a character.
            found += [(task / "comm").read_text(errors="replace").strip()] if task.name != main else []
    return found


def descriptors(pid: int) -> dict[int, str]:
    """Return what the process has open, by descriptor, apart from its standard streams."""
    found = {}
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            found[int(entry.name)] = os.readlink(entry)
    return {descriptor: target for descriptor, target in found.items() if descriptor > 2}


def _id_in_a_fork() -> bytes:
    """Return the first random id that Ray draws in a fork; without Ray, the fork's process id."""
    reader, writer = os.pipe()
    if (pid := os.fork()) == 0:
        raylet = sys.modules.get("ray._raylet")
        os.write(writer, str(os.getpid()).encode() if raylet is None else raylet.WorkerID.from_random().binary())
        os._exit(0)
    os.waitpid(pid, 0)
    drawn = os.read(reader, 64)
    os.close(reader)
    os.close(writer)
    return drawn


def _is_shared(target: str) -> bool:
    return target.startswith(("socket:", "pipe:", "anon_inode:", "/dev/")) and not target.startswith(_HARMLESS)


def _has_children() -> bool:
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return False
    return True
