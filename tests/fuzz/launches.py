"""Groups whose launches break come and go on real raylets, next to a group that is launched again in each round."""

import itertools
import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz.case import Check
from tests.ray.agent.planned import Agent, Group, broken
from tests.ray.agent.raylets import is_empty, patient_cluster
from tests.ray.environment import rays_environment
from workergroups_agent.exchange import Reports

ROUNDS = 3
# The most broken groups at a time, and how many bundles they share; the healthy group has those that follow.
MOST = 4
BUNDLES = 6
HEALTHY = "healthy"
# How long the healthy group's launch may take on a busy machine: less than the time after which a hanging process is
# ended, so that none may keep it waiting. The other steps may take longer.
HEALTHY_SECONDS = 40.0
SECONDS = 90.0
_HANG = "import time; time.sleep(3600)"
# Modules that Ray imports when a process starts: a file of this name, next to the class, hides Python's.
_HIDDEN = ("queue.py", "uuid.py", "tempfile.py", "concurrent/__init__.py", "asyncio/__init__.py", "logging/__init__.py")
# Not SIGTERM: Ray takes it as a request to end.
_SIGNALS = ("SIGKILL", "SIGSEGV", "SIGABRT", "SIGBUS", "SIGHUP")
# What a group reports on its launching process, and on a rank, that has ended on its own.
_DIED = "died in pod"
_ENDED = "ProcessDied"
_NUMBERS = itertools.count()
# Files and variables of a broken group, and a part of what its report says; None if that comes late.
Broken = tuple[dict[str, dict[str, str]], str | None]


@dataclass(frozen=True)
class _End:
    """What broken code does."""

    code: str
    # A part of what is reported if it does so while a process starts, while the launching process imports the class,
    # and in a constructor; None if that comes late.
    at_start: str | None
    in_class: str | None
    in_constructor: str | None


def _exits(choices: random.Random) -> _End:
    status = choices.choice((0, 1, 2, 127, 255, choices.randrange(256)))
    return _End(f"import os; os._exit({status})", f"exit status {status}", _DIED, _ENDED)


def _exits_after_much(choices: random.Random) -> _End:
    """Print lines, or one without an end, before the exit."""
    text = choices.choice((r"'x' * 3_000_000", r"'line\n' * 300_000", r"'\x00\x1b[31m\ud800' * 1000"))
    code = f"import os, sys; os.write({choices.choice((1, 2))}, ({text}).encode(errors='replace')); os._exit(3)"
    return _End(code, "exit status 3", _DIED, _ENDED)


def _is_killed(choices: random.Random) -> _End:
    name = choices.choice(_SIGNALS)
    return _End(f"import os, signal; os.kill(os.getpid(), signal.{name})", f"signal {name}", _DIED, _ENDED)


def _raises(choices: random.Random) -> _End:
    error = choices.choice(("ValueError", "ImportError", "SystemExit", "KeyboardInterrupt", "BaseException"))
    words = f"no licence {choices.randrange(1000)}"
    return _End(f"raise {error}('{words}')", words, words, words)


def _hangs(choices: random.Random) -> _End:
    how = (_HANG, "while True: pass", "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)")
    return _End(choices.choice(how), None, None, None)


def _leaves_a_child(choices: random.Random) -> _End:
    """End, while a child keeps every file of it open."""
    return _End("import os\nif os.fork(): os._exit(4)\nimport time; time.sleep(60)", None, None, None)


_ENDS: tuple[Callable[[random.Random], _End], ...] = (
    _exits,
    _exits_after_much,
    _is_killed,
    _raises,
    _hangs,
    _leaves_a_child,
)


def _by_variables(choices: random.Random) -> Broken:
    """Break the interpreter, or its loader."""
    odd: dict[str, dict[str, str]] = choices.choice(
        (
            {"env": {"PYTHONHOME": "/nonexistent"}},
            {"env": {"PYTHONIOENCODING": "no-such-encoding"}},
            {"env": {"LD_LIBRARY_PATH": "{}"}, "path": {"libc.so.6": "-"}},
        )
    )
    return odd, "exit status 127" if "path" in odd else "exit status 1"


def _on_path(choices: random.Random) -> Broken:
    """Break what each process of the group imports, the launching one included."""
    end = choices.choice(_ENDS)(choices)
    return {"path": {choices.choice(("sitecustomize.py", "ray/__init__.py", *_HIDDEN)): end.code}}, end.at_start


def _in_code(choices: random.Random) -> Broken:
    """Break what the ranks import before they know their class."""
    end = choices.choice(_ENDS)(choices)
    return {"code": {choices.choice(("sitecustomize.py", *_HIDDEN)): end.code}}, end.at_start


def _in_class(choices: random.Random) -> Broken:
    """Break the module of the class, which the launching process imports, too."""
    end = choices.choice(_ENDS)(choices)
    return {"code": {"accumulator.py": end.code}}, end.in_class


def _in_constructor(choices: random.Random) -> Broken:
    end = choices.choice(_ENDS)(choices)
    body = "\n".join(f"        {line}" for line in end.code.splitlines())
    return {"code": {"accumulator.py": f"class Accumulator:\n    def __init__(self):\n{body}\n"}}, end.in_constructor


_PLACES = (_by_variables, _on_path, _in_code, _in_class, _in_constructor)


@contextmanager
def checks() -> Iterator[Check]:
    """Give the check of cases, which share raylets within the context."""
    with tempfile.TemporaryDirectory(prefix="fuzz-launches-") as name, rays_environment(), patient_cluster():
        directory = Path(name)
        agent = Agent(directory)
        yield lambda choices: _check(agent, directory, choices)


def _check(agent: Agent, directory: Path, choices: random.Random) -> str:
    """Play some rounds, and remove everything."""
    present: dict[str, tuple[Group, str | None]] = {}
    for _ in range(ROUNDS):
        for name in choices.sample(sorted(present), choices.randrange(len(present) + 1)):
            del present[name]
        for _ in range(choices.randrange(MOST + 1 - len(present))):
            how, words = choices.choice(_PLACES)(choices)
            group = broken(directory, f"broken-{next(_NUMBERS)}", choices.randrange(BUNDLES), **how)
            present[group.name] = group, words
        _play_round(agent, list(present.values()), has_time=choices.random() < 0.5)
    agent.until(lambda _: is_empty(), pools=(), seconds=SECONDS)
    return "launched"


def _play_round(agent: Agent, present: Sequence[tuple[Group, str | None]], *, has_time: bool) -> None:
    """Launch the healthy group next to the others; they go while their processes start, unless they have time."""
    groups = [group for group, _ in present]
    healthy = Group(HEALTHY, bundles=(("actors", BUNDLES, 2),))
    agent.until(
        lambda reports: reports.groups[HEALTHY].report.ready == "0-1", healthy, *groups, seconds=HEALTHY_SECONDS
    )
    if has_time:
        told = {group.name: words for group, words in present if words is not None}
        agent.until(
            lambda reports: all(words in _said(reports, name) for name, words in told.items()), *groups, seconds=SECONDS
        )


def _said(reports: Reports, name: str) -> str:
    report = reports.groups[name].report
    return " ".join([report.message or "", *(f"{failure.reason}: {failure.message}" for failure in report.failures)])
