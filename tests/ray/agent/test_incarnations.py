"""One incarnation of a group after another, and launches that are cut short."""

import dataclasses
import threading

import pytest
import ray

import workergroups
from tests.ray.agent.planned import Agent, Group, launch, pool, write_orders
from tests.ray.agent.test_executor import all_ready, is_in, ranks
from workergroups.naming import NAMESPACE
from workergroups_agent.executor import ending, launch_record


def names():
    return {actor["name"] for actor in ray.util.list_named_actors(all_namespaces=True)}


def test_a_new_incarnation_takes_the_place_of_the_old_one(agent):
    first = Group(launch=launch(init_kwargs={"start": 1}))
    agent.until(all_ready, first)
    old = workergroups.attach("trainer")
    second = dataclasses.replace(first, incarnation=2, launch=launch(init_kwargs={"start": 5}))
    report = ranks(agent.until(lambda reports: all_ready(reports) and ranks(reports).incarnation == 2, second))
    assert (report.ready, report.failures) == ("0-1", ())
    assert workergroups.attach("trainer").execute_all_sync("add", x=[0, 0]) == [5, 6]
    agent.go_on_until(lambda _: len(names()) == 2)
    with pytest.raises(ray.exceptions.RayActorError):
        old.execute_all_sync("add", x=[0, 0])


def test_a_suspended_group_loses_its_ranks_and_gets_others_when_it_is_resumed(agent):
    trainer = Group()
    agent.until(all_ready, trainer)
    old = workergroups.attach("trainer")
    asleep = dataclasses.replace(trainer, incarnation=2, is_suspended=True)
    report = ranks(agent.until(is_in("Suspended"), asleep))
    assert (report.incarnation, report.created, report.failures) == (2, 0, ())
    agent.go_on_until(lambda _: not names())
    with pytest.raises(ray.exceptions.RayActorError):
        old.execute_all_sync("add", x=[0, 0])
    agent.until(
        lambda reports: all_ready(reports) and ranks(reports).incarnation == 2,
        dataclasses.replace(asleep, is_suspended=False),
    )
    assert workergroups.attach("trainer").execute_all_sync("add", x=[0, 0]) == [0, 1]


def test_nothing_is_launched_for_another_session(agent):
    trainer = Group(session="of another Ray")
    report = ranks(agent.until(is_in("WaitingForPools"), trainer))
    for _ in range(5):
        agent.look()
    assert report.session == agent.session
    assert "Ray was started again" in report.message
    assert names() == set()
    trainer.session = None
    agent.until(all_ready, trainer)


@ray.remote(num_cpus=0)
class Leftover:
    pass


def test_a_launch_that_was_cut_short_is_reported_and_left_until_the_next_incarnation(agent):
    trainer = Group()
    name = f"trainer/{trainer.uid}/1/0-of-2"
    leftover = Leftover.options(name=name, namespace=NAMESPACE, lifetime="detached").remote()
    # An actor that is still to come up is seen within a second only. A launch would have left its record for that time.
    ray.get(leftover.__ray_ready__.remote(), timeout=60)
    report = ranks(agent.until(is_in("LaunchInterrupted"), trainer))
    assert report.message == "the launch was cut short when 1 of 2 ranks were created"
    for _ in range(5):
        agent.look()
    assert len(names()) == 1
    agent.until(all_ready, dataclasses.replace(trainer, incarnation=2))
    agent.go_on_until(lambda _: len(names()) == 2)


def test_a_launch_that_another_executor_may_have_begun_is_not_begun_again(agent):
    trainer = Group()
    launch_record.claim((trainer.uid, 1, 0), "attempt of an executor that is gone")
    report = ranks(agent.until(is_in("LaunchInterrupted"), trainer))
    assert (report.created, names()) == (0, set())


def test_a_failed_launch_stays_failed_under_the_next_executor_and_leaves_nothing(agent, tmp_path):
    trainer = Group(code="raise SystemExit(3)")
    why = "ImportError: module accumulator ends the process when it is imported: SystemExit: 3"
    assert ranks(agent.until(is_in("LaunchFailed"), trainer)).message == why
    other = tmp_path / "next"
    other.mkdir()
    following = Agent(other)
    assert ranks(following.until(is_in("LaunchFailed"), trainer)).message == why
    following.until(all_ready, dataclasses.replace(trainer, incarnation=2, code=""))
    following.until(lambda reports: not reports.groups)
    assert launch_record.known() == set()
    following.until(lambda _: not names())


def test_a_process_that_dies_while_it_launches_is_reported_with_its_pod(agent):
    report = ranks(agent.until(is_in("LaunchFailed"), Group(code="import os; os._exit(1)")))
    assert "the launching task's process died in pod" in report.message


@pytest.mark.parametrize("name", ["cls", "self", "launch", "name"])
def test_keyword_arguments_may_have_any_name(agent, name):
    code = f"class Accumulator:\n    def __init__(this, /, **more):\n        assert more == {{{name!r}: 7}}"
    agent.until(all_ready, Group(bundles=(("actors", 0, 1),), code=code, launch=launch(init_kwargs={name: 7})))


def test_arguments_of_a_third_of_a_megabyte_arrive(agent):
    agent.until(all_ready, Group(launch=launch(init_kwargs={"text": "x" * 350_000})))
    assert len(workergroups.attach("trainer").execute_all_sync("arguments")[0]["text"]) == 350_000


SAVER = """
import time
import workergroups

class Saver(workergroups.Worker):
    def __init__(self, file, seconds=0):
        super().__init__()
        self.file, self.seconds, self.steps = f"{file}.{self.rank}", seconds, 0

    def train(self):
        while self.notice is None:
            self.steps += 1
            time.sleep(0.01)
        return self.notice.reason

    def on_notice(self, notice):
        time.sleep(self.seconds)
        with open(self.file, "a") as file:
            file.write(f"{self.steps > 0} {notice.reason}\\n")
"""


def saving(tmp_path, **kwargs):
    given = launch("saver.Saver", init_kwargs={"file": str(tmp_path / "saved"), **kwargs})
    return Group(more_files={"saver.py": SAVER}, launch=given)


def test_ranks_of_a_group_that_is_changed_save_before_the_next_ones_are_created(agent, tmp_path):
    first = saving(tmp_path, seconds=1)
    agent.until(all_ready, first)
    group = workergroups.attach("trainer")
    calls = group.execute_all_async("train")
    agent.go_on_until(lambda _: [call.state for call in group.calls()] == ["running", "running"])
    second = dataclasses.replace(first, incarnation=2)
    waiting = ranks(agent.until(lambda reports: ranks(reports).message, second))
    assert "2 earlier ranks, which have been told" in waiting.message
    agent.go_on_until(lambda reports: all_ready(reports) and len(names()) == 2)
    assert ray.get(calls) == [ending.REASON] * 2
    assert [(tmp_path / f"saved.{rank}").read_text() for rank in (0, 1)] == [f"True {ending.REASON}\n"] * 2


def test_a_driver_saves_before_the_ranks_of_a_suspended_group_end(agent, tmp_path):
    trainer = Group()
    agent.until(all_ready, trainer)
    group = workergroups.attach("trainer")
    assert group.notice is None
    write_orders(
        agent.exchange, agent.session, (dataclasses.replace(trainer, incarnation=2, is_suspended=True),), (pool(),)
    )
    agent.go_on_until(lambda _: group.notice is not None)
    assert group.execute_all_sync("add", x=[1, 1]) == [1, 2]
    answering = threading.Thread(target=group.answer_notice)
    answering.start()
    agent.go_on_until(is_in("Suspended"))
    answering.join(10)
    assert not answering.is_alive()
    assert group.notice is None


def test_ranks_that_take_too_long_to_save_end_when_their_time_is_over(agent, tmp_path):
    trainer = saving(tmp_path, seconds=60)
    agent.until(all_ready, trainer)
    hurried = pool().model_copy(update={"notice_seconds": 1})
    agent.until(lambda _: not names(), pools=(hurried,))
