"""A process may have any name, which the kernel cuts at 15 bytes: nobody who looks at processes minds."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from workergroups.node import notice, own_processes
from workergroups.processes import stack_dump
from workergroups.warm import preload

# As Ray names the processes of a class `MeineGrößen`: the cut goes through its ö.
NAME = "ray::MeineGrößen.step"
NAMED = f"""
import ctypes, time
ctypes.CDLL(None).prctl(15, {NAME!r}.encode())
print(flush=True)
time.sleep(60)
"""


@pytest.fixture
def process():
    with subprocess.Popen([sys.executable, "-c", NAMED], stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        yield child
        child.kill()


def test_a_name_that_is_cut_within_a_character_hides_no_process(process):
    with pytest.raises(UnicodeDecodeError):
        (own_processes.PROCESSES / str(process.pid) / "comm").read_text(encoding="utf-8")
    assert own_processes.read(process.pid).parent == os.getpid()
    assert own_processes.table()[process.pid].parent == os.getpid()
    assert own_processes.runs(process.pid)


def test_a_node_ends_whatever_the_names_of_its_processes(process):
    assert not notice._is_raylet(process.pid)


def test_stacks_are_asked_for_whatever_the_names_of_processes(process):
    assert not stack_dump._catches(process.pid, signal.SIGUSR1)
    assert not stack_dump._is_stopped(process.pid)


def test_a_thread_of_such_a_name_is_found():
    named, done = threading.Event(), threading.Event()

    def run():
        (own_processes.PROCESSES / "thread-self/comm").write_text(NAME, encoding="utf-8")
        named.set()
        done.wait()

    thread = threading.Thread(target=run)
    thread.start()
    named.wait(5)
    try:
        assert any(name.startswith("ray::MeineGr") for name in preload.other_threads())
    finally:
        done.set()
        thread.join()
