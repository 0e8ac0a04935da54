"""Whatever becomes of a run on kind, all of it is taken away."""

import os
import signal
import sys

import pytest

from tools.console import ToolError
from tools.local_kind import __main__ as commands


@pytest.fixture
def done(monkeypatch):
    """What was done, in its order, with nothing behind it."""
    steps = []
    monkeypatch.setattr(commands, "up", lambda: steps.append("up"))
    monkeypatch.setattr(commands, "down", lambda: steps.append("down"))
    monkeypatch.setattr(commands, "inside", lambda argv: steps.append(argv) or 3)
    before = signal.getsignal(signal.SIGTERM)
    yield steps
    signal.signal(signal.SIGTERM, before)


CLEAN = [sys.executable, "-m", "tools.demo", "clean"]


def test_a_run_ends_with_the_commands_status(done):
    assert commands.run(["make", "demo"]) == 3
    assert done == ["up", ["make", "demo"], CLEAN, "down"]


def test_what_could_not_be_brought_up_is_taken_away(done, monkeypatch):
    def fail(*_):
        raise ToolError("no engine")

    monkeypatch.setattr(commands, "up", fail)
    monkeypatch.setattr(commands, "inside", fail)
    with pytest.raises(ToolError, match="no engine"):
        commands.run(["make", "demo"])
    assert done == ["down"]


def test_a_run_that_is_told_to_end_takes_all_away(done, monkeypatch):
    monkeypatch.setattr(commands, "up", lambda: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(SystemExit) as ended:
        commands.run(["make", "demo"])
    assert ended.value.code == 143
    assert done == [CLEAN, "down"]
