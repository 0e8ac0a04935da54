"""A process that may wait becomes its program when a CPU is idle, or after a time."""

import os
import subprocess
import sys
import time

import pytest

from workergroups.node import idle
from workergroups_agent import when_idle


@pytest.fixture
def clock(monkeypatch):
    """A machine's clock, on which sleeping takes no time, and how busy its CPUs are."""
    machine = {"now": 0.0, "idle": 0.0, "idle CPUs": 0.0}

    def sleep(seconds):
        machine["now"] += seconds
        machine["idle"] += seconds * machine["idle CPUs"]

    monkeypatch.setattr(time, "monotonic", lambda: machine["now"])
    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr(idle, "idle_seconds", lambda: machine["idle"])
    return machine


@pytest.mark.parametrize(("idle_cpus", "waited"), [(0.0, 10.0), (0.9, 10.0), (1.0, 0.5), (14.0, 0.5)])
def test_it_waits_until_one_cpu_is_idle_but_not_for_ever(clock, idle_cpus, waited):
    clock["idle CPUs"] = idle_cpus
    assert idle.wait_for_idle_cpu(10.0) == (idle_cpus >= 1)
    assert clock["now"] == pytest.approx(waited)


def test_this_machine_counts_idle_time():
    assert 0 < idle.idle_seconds() < time.monotonic() * (os.cpu_count() or 1) * 2


def test_it_becomes_the_program_under_the_same_number():
    program = [sys.executable, "-c", "import os, sys; print(os.getpid(), sys.argv)", "-x"]
    with subprocess.Popen([sys.executable, when_idle.__file__, "0", *program], stdout=subprocess.PIPE) as process:
        assert process.stdout.read().decode() == f"{process.pid} ['-c', '-x']\n"
