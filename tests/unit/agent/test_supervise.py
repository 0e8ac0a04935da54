"""An executor that ends or hangs is started again, and one that works is left alone."""

import sys
import time

import pytest

from workergroups_agent.executor.supervise import run_once


def ending(script, hang_seconds=20.0, start_seconds=20.0):
    """The exit status of a process, and how long it was let run."""
    began = time.monotonic()
    command = [sys.executable, "-c", f"import os, sys, time; pipe = int(sys.argv[1])\n{script}"]
    status = run_once(command, start_seconds, hang_seconds)
    return status, time.monotonic() - began


def test_a_process_that_ends_is_noticed_at_once():
    status, seconds = ending("sys.exit(3)")
    assert status in (3, -9)  # its pipe is closed a moment before it ends
    assert seconds < 15


def test_a_process_that_gives_signs_of_life_is_let_run():
    beats = "for _ in range(6): os.write(pipe, b'.'); time.sleep(0.5)"
    _, seconds = ending(beats, hang_seconds=2.5)
    assert seconds > 3


@pytest.mark.parametrize(
    "stuck", ["time.sleep(60)", "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32)); time.sleep(60)"]
)
def test_a_process_that_hangs_is_killed(stuck):
    status, seconds = ending(f"os.write(pipe, b'.'); {stuck}", hang_seconds=1.0)
    assert status == -9
    assert seconds < 30


def test_a_process_that_never_starts_is_killed():
    status, seconds = ending("time.sleep(60)", start_seconds=1.0)
    assert status == -9
    assert seconds < 30
