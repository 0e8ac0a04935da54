"""The executor on a real Ray: what is planned comes to exist, and what is reported is true."""

import os
import signal

import ray

import workergroups
from tests.ray.agent.planned import Agent, Group, launch, pool


def ranks(reports, name="trainer"):
    return reports.groups[name].report


def all_ready(reports):
    return all(
        entry.report.state == "Launched" and entry.report.ready_count == entry.report.created
        for entry in reports.groups.values()
    )


def is_in(state, name="trainer"):
    return lambda reports: ranks(reports, name).state == state


def reserved(reports):
    return all(not entry.report.nodes for entry in reports.pools.values())


def test_a_planned_pool_is_reserved_on_its_nodes(agent):
    report = agent.until(reserved).pools["actors"].report
    assert (report.session, report.joined_nodes) == (agent.session, 2)
    assert (report.reserved_nodes, report.reserved, report.nodes) == (2, "0-1", ())


def test_a_planned_group_answers_by_its_name(agent):
    trainer = Group(
        bundles=(("actors", 0, 2), ("actors", 4, 2)),
        launch=launch(init_kwargs={"start": 10, "colour": "grün \U0001f340"}, env={"FLAVOUR": "mint \U0001f33f"}),
    )
    report = ranks(agent.until(all_ready, trainer))
    assert (report.state, report.ready, report.created) == ("Launched", "0-3", 4)
    assert (report.session, report.incarnation) == (agent.session, 1)
    attached = workergroups.attach("trainer", timeout=20)
    assert attached.world_size == 4
    assert attached.execute_all_sync("add", x=[1, 1, 1, 1]) == [11, 12, 13, 14]
    assert attached.execute_all_sync("environment", "FLAVOUR") == ["mint \U0001f33f"] * 4
    assert attached.execute_all_sync("arguments") == [{"colour": "grün \U0001f340"}] * 4
    assert attached.execute_all_sync("environment", "CUDA_VISIBLE_DEVICES") == ["0", "1", "0", "1"]
    assert attached.execute_all_sync("environment", "RAY_LOCAL_RANK") == ["0", "1", "0", "1"]


def test_a_class_of_the_image_needs_no_code(agent):
    agent.until(all_ready, Group(code=None, launch=launch("workergroups.Worker", config_map=None)))


def test_the_next_agent_adopts_what_is_there(agent, tmp_path):
    trainer = Group()
    agent.until(all_ready, trainer)
    before = workergroups.attach("trainer").execute_all_sync("pid")
    other = tmp_path / "next"
    other.mkdir()
    assert Agent(other).until(all_ready, trainer) == agent.exchange.read_reports()
    assert workergroups.attach("trainer").execute_all_sync("pid") == before


def test_a_constructor_that_raises_is_reported_with_its_last_line(agent):
    trainer = Group(launch=launch(init_kwargs={"fail_on": 1}))
    (failure,) = ranks(agent.until(lambda reports: ranks(reports).failures, trainer)).failures
    assert (failure.rank, failure.reason) == (1, "ConstructorFailed")
    assert failure.message == "ValueError: rank 1 was told to fail"


def test_a_rank_whose_constructor_raises_is_never_reported_as_ready(agent):
    """Ray calls it alive for a moment, the longer the more its exception says."""
    ready = set()

    def has_failed(reports):
        ready.add(ranks(reports).ready)
        return ranks(reports).failures

    failing = Group(bundles=(("actors", 0, 1),), launch=launch(init_kwargs={"fail_on": 0, "message": "x" * 1_000_000}))
    agent.until(is_in("Launched"), failing)
    agent.go_on_until(has_failed, pause=0)
    assert not any(ready)


def test_a_class_that_does_not_import_is_reported_with_the_exception_and_its_place(agent):
    report = ranks(agent.until(is_in("LaunchFailed"), Group(code="\nimport no_such_module")))
    assert report.message == "ModuleNotFoundError: No module named 'no_such_module' (accumulator.py, line 2)"


def test_arguments_that_the_constructor_does_not_take_are_reported_before_any_rank_exists(agent):
    code = "class Accumulator:\n    def __init__(self, size): ..."
    report = ranks(agent.until(is_in("LaunchFailed"), Group(code=code, launch=launch(init_kwargs={"colour": "red"}))))
    missing = "missing a required argument: 'size'; unexpected 'colour', did you mean 'size'?"
    assert report.message == f"TypeError: Accumulator(size): {missing}"
    assert report.created == 0


def test_what_a_launch_waits_for_is_reported_and_it_continues_when_that_comes(agent):
    trainer = Group(missing="spec.code.configMap: there is no ConfigMap code: create it")
    report = ranks(agent.until(is_in("WaitingForCode"), trainer))
    assert report.message == trainer.missing
    trainer.missing = None
    agent.until(all_ready, trainer)


def test_a_killed_process_is_reported_and_the_others_continue(agent):
    agent.until(all_ready, Group())
    victim = workergroups.attach("trainer").execute_all_sync("pid")[1]
    os.kill(victim, signal.SIGKILL)
    report = ranks(agent.go_on_until(lambda reports: ranks(reports).failures, seconds=5))
    assert report.failures[0].reason == "ProcessDied"
    assert (report.failures[0].rank, report.ready) == (1, "0")


def test_what_has_no_owner_any_more_is_removed(agent):
    agent.until(all_ready, Group())
    agent.until(lambda _: not ray.util.list_named_actors(all_namespaces=True))
    agent.until(reserved, pools=(pool(uid="uid-of-another"),))
    states = {
        entry["name"].split("/")[1]: entry["state"]
        for entry in ray.util.placement_group_table().values()
        if entry["state"] != "REMOVED"
    }
    assert states == {"uid-of-another": "CREATED"}
