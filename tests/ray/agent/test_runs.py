"""The method that a group runs: called on all ranks once they are ready, and on each only once."""

import dataclasses

import pytest
import ray

import workergroups
from tests.ray.agent.executor_process import Process
from tests.ray.agent.planned import Group, launch
from tests.ray.agent.test_executor import all_ready, ranks
from workergroups.announcements import runs
from workergroups.ray_private import key_value_store
from workergroups_api.launch import RunLaunch

TRAINER = """
import asyncio, os, pathlib, signal, time
import workergroups

class Trainer(workergroups.Worker):
    def train(self, directory, fail_on=None, nothing=0):
        assert nothing is None
        with (pathlib.Path(directory) / f"calls-{self.rank}").open("a") as calls:
            calls.write("x")
        if self.rank == fail_on:
            raise ValueError(f"rank {self.rank} was told to fail")
        while not (pathlib.Path(directory) / "done").exists():
            time.sleep(0.05)

    def yields(self):
        yield 1

    def pid(self):
        return os.getpid()

class Server(Trainer):
    async def serve(self, directory):
        await asyncio.sleep(0.1)
        (pathlib.Path(directory) / f"calls-{self.rank}").write_text("x")
"""


def trainer(method, class_path="accumulator.Trainer", **kwargs):
    run = RunLaunch(method=method, keywords=kwargs)
    return Group(code=TRAINER, launch=launch(class_path, run=run))


def calls(directory):
    return {path.name: path.read_text() for path in directory.glob("calls-*")}


def begun(count):
    return lambda reports: ranks(reports).run is not None and ranks(reports).run.begun == count


def returned(count):
    return lambda reports: ranks(reports).run is not None and ranks(reports).run.returned == count


ONCE = {"calls-0": "x", "calls-1": "x"}


def test_each_rank_is_called_once_also_if_the_executor_is_killed_while_the_method_runs(cluster, tmp_path):
    group = trainer("train", directory=str(tmp_path), nothing=None)
    first = Process(cluster, tmp_path)
    try:
        first.until(begun(2), group)
    finally:
        first.kill()
    successor = Process(cluster, tmp_path)
    try:
        report = ranks(successor.until(lambda reports: all_ready(reports) and begun(2)(reports), group))
        assert (report.run.returned, report.failures) == (0, ())
        (tmp_path / "done").touch()
        successor.until(returned(2), group)
        assert calls(tmp_path) == ONCE
        successor.until(lambda _: True)
        assert successor.process.poll() is None
    finally:
        successor.kill()


def test_ranks_end_with_the_run_and_their_bundles_are_free(agent, tmp_path):
    (tmp_path / "done").touch()
    group = trainer("train", directory=str(tmp_path), nothing=None)
    agent.until(returned(2), group)
    ended = dataclasses.replace(group, is_suspended=True)
    report = ranks(agent.until(lambda reports: ranks(reports).state == "Suspended", ended))
    assert (report.incarnation, report.created) == (1, 0)
    agent.go_on_until(lambda _: not ray.util.list_named_actors(all_namespaces=True))
    agent.go_on_until(lambda _: key_value_store.keys(runs.KV_NAMESPACE) == [])


@pytest.mark.parametrize(
    ("method", "kwargs", "message"),
    [
        ("train", {"fail_on": 1, "nothing": None}, "ValueError: rank 1 was told to fail"),
        ("train", {"colour": "red"}, "TypeError: Trainer.train() got an unexpected keyword argument 'colour'"),
        ("trian", {}, "AttributeError: spec.run.method: Trainer has no method 'trian'; it has "),
        ("yields", None, "TypeError: spec.run.method: 'yields' is a generator"),
    ],
)
def test_an_exception_is_a_failure_of_its_rank(agent, tmp_path, method, kwargs, message):
    more = {} if kwargs is None else {"directory": str(tmp_path)} | kwargs

    def of_rank_1(reports):
        return [failure for failure in ranks(reports).failures if failure.rank == 1]

    reports = agent.until(of_rank_1, trainer(method, **more))
    assert {failure.reason for failure in ranks(reports).failures} == {"RunFailed"}
    assert of_rank_1(reports)[0].message[: len(message)] == message
    (tmp_path / "done").touch()


def test_the_next_incarnation_is_called_again_and_calls_have_the_name_of_the_method(agent, tmp_path):
    group = trainer("train", directory=str(tmp_path), nothing=None)
    agent.until(begun(2), group)
    agent.go_on_until(lambda _: "train" in str(workergroups.attach("trainer").calls()), seconds=60)
    (tmp_path / "done").touch()
    agent.until(
        lambda reports: ranks(reports).incarnation == 2 and returned(2)(reports),
        dataclasses.replace(group, incarnation=2),
    )
    assert calls(tmp_path) == {"calls-0": "xx", "calls-1": "xx"}


def test_a_coroutine_of_an_asynchronous_class_runs_to_its_end(agent, tmp_path):
    agent.until(returned(2), trainer("serve", "accumulator.Server", directory=str(tmp_path)))
    assert calls(tmp_path) == ONCE


@pytest.mark.long
def test_a_run_that_hangs_is_found_by_the_name_of_its_method(agent, tmp_path):
    group = dataclasses.replace(trainer("train", directory=str(tmp_path), nothing=None), hang_seconds=3)
    hang = ranks(agent.until(lambda reports: ranks(reports).hang, group, seconds=30)).hang
    assert (hang.method, hang.ranks) == ("train", "0-1")
    assert "in train" in hang.message
    (tmp_path / "done").touch()
    agent.go_on_until(lambda reports: returned(2)(reports) and ranks(reports).hang is None, seconds=20)
