"""What ranks record of the method that their group runs, and what is accepted of what somebody may have written."""

import asyncio
import json
import time

import pytest
import ray

from workergroups.announcements import runs
from workergroups.announcements.runs import RunRecord, RunStep, read
from workergroups.node.notice import Notice, to_record
from workergroups.single_controller.ray.run_method import run_method


def dumped(**record):
    return json.dumps(record).encode()


@pytest.mark.parametrize(
    "odd",
    [
        b"",
        b"{",
        b"[]",
        b"\xff",
        dumped(step="Returned"),
        dumped(step="Paused", message=""),
        dumped(step=1, message=""),
        dumped(step="Raised", message=1),
        dumped(step="Raised", message="x" * 20_000),
    ],
)
def test_what_no_rank_of_ours_has_written_is_none(odd):
    assert read(odd) is None


@pytest.fixture
def store(monkeypatch):
    """The records of the process's rank, in the order in which they were written."""
    written = []
    monkeypatch.setattr(runs.key_value_store, "put", lambda _, _key, value: written.append(read(value)))

    def put_if_absent(_, _key, value):
        if written:
            return False
        written.append(read(value))
        return True

    monkeypatch.setattr(runs.key_value_store, "put_if_absent", put_if_absent)
    monkeypatch.setattr(ray, "get_runtime_context", Context)
    return written


class Context:
    def get_actor_id(self):
        return "actor"


def test_what_returns_because_the_rank_is_about_to_end_is_not_over(store, monkeypatch, tmp_path):
    file = tmp_path / "notice"
    monkeypatch.setenv("WORKERGROUPS_NOTICE", str(file))
    run = run_method(Trainer)
    file.write_bytes(to_record(Notice("its node ends", time.time() + 30)))
    run(Trainer(), "train", {"rate": 3})
    assert [record.step for record in store] == [RunStep.BEGUN]


def test_what_raises_is_over_also_after_a_notice(store, monkeypatch, tmp_path):
    file = tmp_path / "notice"
    monkeypatch.setenv("WORKERGROUPS_NOTICE", str(file))
    file.write_bytes(to_record(Notice("its node ends", time.time() + 30)))
    run_method(Trainer)(Trainer(), "fail", {})
    assert [record.step for record in store] == [RunStep.BEGUN, RunStep.RAISED]


class Trainer:
    calls = 0

    def train(self, rate):
        self.calls += rate

    def fail(self):
        raise ValueError("no\nsecond line")

    def leave(self):
        raise SystemExit(3)

    def values(self):
        yield 1


class Server(Trainer):
    async def serve(self, rate):
        await asyncio.sleep(0)
        self.calls += rate


def run(rank, method, **kwargs):
    result = run_method(type(rank))(rank, method, kwargs)
    return asyncio.run(result) if asyncio.iscoroutine(result) else result


BEGUN, RETURNED = RunRecord(RunStep.BEGUN), RunRecord(RunStep.RETURNED)


@pytest.mark.parametrize(("rank", "method"), [(Trainer(), "train"), (Server(), "train"), (Server(), "serve")])
def test_a_rank_runs_the_method_once_however_often_it_is_asked_to(store, rank, method):
    for _ in range(2):
        run(rank, method, rate=5)
    assert (rank.calls, store) == (5, [BEGUN, RETURNED])


@pytest.mark.parametrize("kind", [Trainer, Server])
@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("fail", "second line"),
        ("trian", "AttributeError: spec.run.method: {kind} has no method 'trian'; it has fail, leave, "),
        ("values", "TypeError: spec.run.method: 'values' is a generator"),
    ],
)
def test_an_exception_is_recorded_with_its_last_line_and_printed(store, capsys, kind, method, words):
    run(kind(), method)
    assert store[1].step is RunStep.RAISED
    assert store[1].message.startswith(words.format(kind=kind.__name__))
    assert "Traceback" in capsys.readouterr().err


def test_a_rank_that_ends_its_process_records_nothing_but_that_it_began(store):
    with pytest.raises(SystemExit):
        run(Trainer(), "leave")
    assert store == [BEGUN]


def test_a_long_exception_is_shortened(store):
    runs.end("actor", "\u20ac" * 100_000)
    assert len(store[0].message) == 1024
