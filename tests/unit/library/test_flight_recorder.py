"""What another process of the node gets to know from a rank's flight recorder."""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from workergroups.stacks import flight_recorder
from workergroups.stacks.flight_recorder import Flight, Joined

# Another run of these tests on this machine has ranks of other names.
OWN, OTHER = f"actor-{os.getpid()}-7", f"actor-{os.getpid()}-8"
# A rank whose torch is a stand-in that answers like torch 2.11 with gloo, and then like one without a recorder.
RANK = (
    f"""
OWN = {OWN!r}
"""
    + """
import json, sys, types
from workergroups.stacks import flight_recorder

def entry(number, name, is_p2p=False):
    return {
        "collective_seq_id": number, "profiling_name": name, "is_p2p": is_p2p, "pg_id": 0,
        "process_group": ["0", "default_pg"],
    }

TRACE = {
    "entries": [entry(6, "gloo:barrier"), entry(7, "gloo:all_reduce"), entry(7, "gloo:send", is_p2p=True)],
    "pg_status": {"0": {"last_completed_collective": "6", "last_enqueued_collective": "7"}},
}
torch = types.ModuleType("torch._C._distributed_c10d")
torch._dump_fr_trace_json = lambda *_: json.dumps(TRACE).encode()
distributed = types.ModuleType("torch.distributed")
distributed.is_initialized = lambda: sys.argv[1] != "alone"
distributed.get_rank = lambda: 2
details = types.ModuleType("torch.distributed.distributed_c10d")
group = object()
details._world = types.SimpleNamespace(pg_names={group: "0"}, pg_group_ranks={group: {1: 1, 0: 0, 2: 2}})
if sys.argv[1] == "odd":
    torch._dump_fr_trace_json = lambda *_: b"no json"
sys.modules.update({module.__name__: module for module in (torch, distributed, details)})
flight_recorder.enable(OWN)
flight_recorder.enable(OWN)
print("up", flush=True)
sys.stdin.read()
"""
)


@contextmanager
def rank(how="usual", **variables):
    env = {**os.environ, **variables}
    command = [sys.executable, "-c", RANK, how]
    with subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"up\n"
        try:
            yield process
        finally:
            process.send_signal(signal.SIGCONT)
            process.stdin.close()


@pytest.mark.parametrize("variables", [{}, *({variable: "100"} for variable in flight_recorder.VARIABLES)])
def test_a_rank_says_which_collectives_it_has_joined(variables):
    with rank(**variables):
        for _ in range(2):
            answers = flight_recorder.ask({OWN, OTHER})
            assert answers.keys() == {OWN}
            assert flight_recorder.read(answers[OWN]) == Flight(
                2, {"0:default_pg": Joined(7, 6, "gloo:all_reduce", (0, 1, 2))}
            )
        assert flight_recorder.ask({OTHER}) == {}


@pytest.mark.parametrize("value", ["", "0", "-1", "many"])
def test_with_a_buffer_of_no_size_there_is_no_recorder(value):
    with rank(TORCH_FR_BUFFER_SIZE=value):
        assert flight_recorder.ask({OWN}) == {}


@pytest.mark.parametrize("how", ["alone", "odd"])
def test_a_rank_without_a_process_group_or_with_another_torch_says_nothing(how):
    with rank(how, TORCH_FR_BUFFER_SIZE="100"):
        assert flight_recorder.ask({OWN}) == {}


def test_a_frozen_rank_is_not_waited_for_long():
    with rank(TORCH_FR_BUFFER_SIZE="100") as process:
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)  # Until then, one of its threads may still answer.
        began = time.monotonic()
        assert flight_recorder.ask({OWN}) == {}
        assert time.monotonic() - began < 4
