"""The stacks of a process that can be asked for them, and what happens to one that cannot."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from workergroups.processes import py_spy
from workergroups.processes.stack_dump import dump_processes, is_writing
from workergroups.ray_private.start import RAYS_DEFAULT_WORKER
from workergroups.worker_process import default_worker

ASKABLE = "import sys, time\nfrom workergroups.worker_process import default_worker\ndefault_worker.answer()\n"
ENDED = 2**22 + 1
READY = "print('ready', flush=True)\n"
WAIT = "def wait():\n    time.sleep(600)\nwait()\n"
# A main thread that waits for ever for a mutex, in C, and keeps the interpreter's lock.
HANG_IN_C = """
import ctypes, subprocess
mutex, library = ctypes.create_string_buffer(64), ctypes.PyDLL(None)
def hang():
    library.pthread_mutex_lock(mutex)
    subprocess.Popen(["sh", "-c", "sleep 2; echo ready"])  # when this thread runs no Python any more
    library.pthread_mutex_lock(mutex)
hang()
"""
# The file in memory is there for a while before stacks are written to it.
SLOW_TO_REGISTER = """
import faulthandler
register = faulthandler.register
faulthandler.register = lambda *given, **named: (time.sleep(0.5), register(*given, **named))
"""
MANY_STACKS = """
import threading
def deeper(steps):
    return deeper(steps - 1) if steps else (ready.wait(), time.sleep(600))
def bottom():
    deeper(80)
ready = threading.Barrier(81, action=lambda: print("ready", flush=True))
for _ in range(80):
    threading.Thread(target=bottom, daemon=True).start()
bottom()
"""


@contextmanager
def running(program, stderr=None):
    """A process that has begun with the last lines of this program."""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=stderr, text=True) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def test_a_process_writes_its_stacks_to_memory_and_nothing_to_its_log(tmp_path):
    with (tmp_path / "err").open("w") as log, running(ASKABLE + READY + WAIT, log) as process:
        for _ in range(2):
            assert "in wait\n" in dump_processes([process.pid])[process.pid]
    assert (tmp_path / "err").read_text() == ""


def test_a_process_that_a_busy_node_interrupts_while_it_writes_is_read_to_the_end():
    with running(ASKABLE + MANY_STACKS) as process, ThreadPoolExecutor(1) as threads:
        for _ in range(200):  # until it is caught in the act
            asked = threads.submit(dump_processes, [process.pid])
            while not (is_caught := is_writing(process.pid)) and not asked.done():
                pass
            if is_caught:
                break
        assert is_caught
        os.kill(process.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        time.sleep(0.5)
        os.kill(process.pid, signal.SIGCONT)
        assert asked.result()[process.pid].count("in bottom\n") == 81


def test_a_process_is_asked_when_its_file_takes_its_stacks():
    with running(ASKABLE + SLOW_TO_REGISTER + READY + WAIT) as process:
        assert "in wait\n" in dump_processes([process.pid])[process.pid]


def test_a_driver_can_be_asked_once_it_has_used_the_library():
    program = "import time\nfrom workergroups.processes import stack_dump\nstack_dump.enable_driver()\n"
    with running(program * 2 + READY + WAIT) as process:
        assert "in wait\n" in dump_processes([process.pid])[process.pid]


def test_a_process_that_hangs_in_c_writes_its_stacks_to_its_log(tmp_path):
    with (tmp_path / "err").open("w") as log:
        log.write("said before\n")
        log.flush()
        with running(ASKABLE + HANG_IN_C, log) as process:
            found = dump_processes([process.pid])[process.pid]
    assert found.startswith("Current thread 0x")
    assert "in hang\n" in found


def test_without_a_log_it_says_why_there_are_no_stacks():
    with running(ASKABLE + HANG_IN_C, subprocess.PIPE) as process:
        said = dump_processes([process.pid])[process.pid]
    assert said == "no stacks: it runs C code, and its standard error is no file"


def test_a_process_that_does_not_expect_the_signal_does_not_get_it():
    with running("import time\n" + READY + WAIT) as process:
        found = dump_processes([process.pid])[process.pid]
        assert process.poll() is None
    assert "in wait\n" in found  # py-spy has read it


def test_of_a_process_that_is_none_of_pythons_or_has_ended_it_says_why_there_are_no_stacks():
    with subprocess.Popen(["sleep", "60"]) as process:
        said = dump_processes([process.pid, ENDED])
        process.kill()
    assert set(said) == {process.pid, ENDED}
    assert all(why.startswith("no stacks: py-spy cannot read them: ") for why in said.values())


def test_of_very_many_processes_the_first_are_read(monkeypatch):
    monkeypatch.setattr(py_spy, "_MOST", 1)
    said = py_spy.dump([ENDED, ENDED + 1])
    assert said[ENDED + 1] == "no stacks: those of the first 1 such processes of the pod are read"
    assert said[ENDED] != said[ENDED + 1]


def test_without_py_spy_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(py_spy, "_program", lambda: None)
    assert dump_processes([ENDED]) == {
        ENDED: "no stacks: it cannot be asked, and there is no py-spy to read them (pip install py-spy)"
    }


def test_a_frozen_process_is_given_up():
    with running(ASKABLE + READY + WAIT) as process:
        os.kill(process.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        began = time.monotonic()
        assert dump_processes([process.pid])[process.pid] == "no stacks within 3 s: its process is stopped"
        assert time.monotonic() - began < 10


@pytest.mark.parametrize("flags", [(), ("-P",)])
def test_rays_program_runs_as_if_raylets_had_started_it(flags, tmp_path):
    """With its own name, its own directory in the search path, and nothing of ours before it."""
    theirs = tmp_path / "ray" / "_private" / "workers" / "default_worker.py"
    theirs.parent.mkdir(parents=True)
    (tmp_path / "ray" / "__init__.py").write_text("")
    theirs.write_text("import sys\nprint(sys.argv, sys.path[0], __name__, sys.breakpointhook.__name__)\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, *flags, default_worker.__file__, "--port=1"]
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    first = tmp_path if flags else theirs.parent
    assert said == f"{[str(theirs), '--port=1']} {first} __main__ stop_here\n"
    assert os.path.basename(RAYS_DEFAULT_WORKER) == os.path.basename(default_worker.__file__)
