"""Which ranks are suspect when a call hangs, whatever they hang in, and what is left of it when the call returns."""

import contextlib
import dataclasses
import os
import signal
import time

import pytest

import workergroups
from tests.ray.agent.planned import Agent, Group, launch
from workergroups.ray_private import key_value_store
from workergroups_agent.hang_records import HANGS, STACKS
from workergroups_agent.observer import hangs, hung_calls

HANG_SECONDS = 3
# From when a call is late until its suspects are named.
NAMED_SECONDS = 10
FOUR_RANKS = (("actors", 2, 4),)

TRAINER = """
import os, re, signal, threading, time
import workergroups

class Trainer(workergroups.Worker):
    def step(self, guilty, how, path=None):
        if self.rank == guilty:
            getattr(self, how)(path)
        else:
            self.meet(path)
        return self.rank

    def meet(self, path):
        while path and not os.path.exists(path):
            time.sleep(0.05)

    def read_shard(self, path):
        while path is None or not os.path.exists(path):
            time.sleep(0.05)

    def freeze(self, path):
        os.kill(os.getpid(), signal.SIGSTOP)

    def hold_the_lock(self, path):
        re.match(r"(a+)+$", "a" * 40 + "b")

    def pause(self, path):
        breakpoint()

    def pid(self):
        return os.getpid()

    def join(self):
        import torch.distributed as dist
        dist.init_process_group("gloo")

    def reduce(self, guilty):
        import torch, torch.distributed as dist
        if self.rank == guilty:
            time.sleep(3600)
        dist.all_reduce(torch.ones(1))
"""


def trainer():
    return Group(
        code=TRAINER,
        launch=launch("accumulator.Trainer", env={"TORCH_FR_BUFFER_SIZE": "100"}),
        bundles=FOUR_RANKS,
        hang_seconds=HANG_SECONDS,
    )


def report_of(reports):
    return reports.groups["trainer"].report


@pytest.fixture
def group(agent):
    agent.until(lambda reports: report_of(reports).ready_count == 4, trainer())
    with contextlib.closing(workergroups.attach("trainer", timeout=20)) as group:
        yield group


def hang_of(agent):
    """Return the hang, which must be reported in time. On a busy machine, a node's answer may correct it later."""
    began = time.monotonic()
    agent.go_on_until(lambda reports: report_of(reports).hang, pause=0.3)
    assert HANG_SECONDS - 1 < time.monotonic() - began < HANG_SECONDS + NAMED_SECONDS
    found = agent.go_on_until(lambda reports: "its node has not answered" not in report_of(reports).hang.message)
    return report_of(found).hang


def records():
    return key_value_store.keys(HANGS) + key_value_store.keys(STACKS)


@pytest.mark.parametrize("how", ["read_shard", "hold_the_lock", "freeze"])
def test_the_rank_that_the_others_wait_for_is_suspect(agent, group, tmp_path, how):
    pids = group.execute_all_sync("pid")
    group.execute_all_async("step", 2, how, str(tmp_path / "never"))
    try:
        found = hang_of(agent)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pids[2], signal.SIGCONT)
    assert (found.method, found.ranks, found.suspects) == ("step", "0-3", "2"), found.message
    assert "ranks 0-1,3 are in accumulator.py" in found.message
    guilty = "without stacks (no stacks within 3 s: its process is stopped)" if how == "freeze" else f"in {how}"
    assert found.message.endswith(guilty)


def test_a_call_that_returns_is_no_hang_any_more_also_if_the_agent_has_restarted(agent, group, tmp_path):
    path = tmp_path / "go on"
    refs = group.execute_all_async("step", 1, "read_shard", str(path))
    found = hang_of(agent)
    assert found.suspects == "1"
    successor = Agent(tmp_path)
    successor.look()
    assert report_of(successor.exchange.read_reports()).hang == found
    path.touch()
    assert len(refs) == 4
    successor.go_on_until(lambda reports: report_of(reports).hang is None, seconds=10)
    assert records() == []


def test_a_pause_is_no_hang(agent, group):
    group.execute_all_async("step", 2, "pause")
    agent.go_on_until(lambda reports: report_of(reports).pauses)
    until = time.monotonic() + HANG_SECONDS + NAMED_SECONDS
    assert report_of(agent.go_on_until(lambda _: time.monotonic() > until, pause=0.3)).hang is None
    assert records() == []


def test_a_call_on_one_rank_hangs_alone(agent, group):
    group.execute_rank_zero_async("read_shard", None)
    found = hang_of(agent)
    assert (found.method, found.ranks) == ("read_shard", "0")
    # The others are in no method, and most ranks are.
    assert found.suspects == "0"


def test_nonsense_in_the_records_harms_nobody(agent, group, tmp_path):
    for key, value in {"uid-x/1/a": b"{", "odd": b"\xff", "uid-x/1/" + "y" * 10_000: b"x" * 1_000_000}.items():
        key_value_store.put(HANGS, key, value)
        key_value_store.put(STACKS, key, value)
    group.execute_all_async("step", 3, "read_shard", str(tmp_path / "never"))
    assert hang_of(agent).suspects == "3"
    assert len(records()) == 3, "the nonsense is gone"


def test_ranks_in_a_collective_wait_for_the_one_that_is_not(agent, group):
    group.execute_all_sync("join")
    group.execute_all_async("reduce", 1)
    found = hang_of(agent)
    assert (found.ranks, found.suspects) == ("0-3", "1")
    assert "ranks 0,2-3 wait in torch.distributed.all_reduce (accumulator.py" in found.message
    assert found.message.endswith(
        "suspect: rank 1, by torch's flight recorder: it has not joined gloo:all_reduce, collective 1 of process group "
        "default_pg"
    )


def test_the_oldest_call_of_a_group_without_a_limit_is_told_until_it_returns(agent, tmp_path, monkeypatch):
    monkeypatch.setattr(hung_calls, "OLD_SECONDS", 3.0)
    monkeypatch.setattr(hangs, "LONG_SECONDS", 1.0)
    unlimited = dataclasses.replace(trainer(), hang_seconds=None)
    agent.until(lambda reports: report_of(reports).ready_count == 4, unlimited)
    path = tmp_path / "go on"
    with contextlib.closing(workergroups.attach("trainer", timeout=20)) as group:
        refs = group.execute_all_async("step", 2, "read_shard", str(path))
        said = report_of(agent.go_on_until(lambda reports: report_of(reports).oldest_call)).oldest_call
        assert (said.method, said.rank in range(4)) == ("step", True)
        assert 3 <= time.time() - said.since.timestamp() < 30
        path.touch()
        assert workergroups.get(refs) == [0, 1, 2, 3]
        agent.go_on_until(lambda reports: report_of(reports).oldest_call is None)
