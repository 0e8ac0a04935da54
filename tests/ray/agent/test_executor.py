"""The executor on a real Ray: what is planned comes to exist, and what is reported is true."""

import os
import signal

import ray
from planned import Agent, group, orders, pool

import workergroups


def all_ready(reports):
    ranks = reports["groups"]["trainer"]["report"]
    return ranks["readyCount"] == ranks["total"]


def reserved(reports):
    pools = reports["pools"].values()
    return all(entry["report"]["reservedBundles"] == entry["report"]["totalBundles"] for entry in pools)


def test_a_planned_pool_is_reserved_on_its_nodes(agent):
    reports = agent.until(orders(), reserved)
    report = reports["pools"]["actors"]["report"]
    assert report["reservedBundles"] == 4
    assert [node["state"] for node in report["nodes"]] == ["Reserved", "Reserved"]


def test_a_planned_group_answers_by_its_name(agent):
    reports = agent.until(orders(group(init_kwargs={"start": 10}, env={"FLAVOUR": "mint"})), all_ready)
    ranks = reports["groups"]["trainer"]["report"]
    assert (ranks["state"], ranks["ready"], ranks["created"]) == ("Launched", "0-3", 4)
    attached = workergroups.attach("trainer", timeout=20)
    assert attached.world_size == 4
    assert attached.execute_all_sync("add", x=[1, 1, 1, 1]) == [11, 12, 13, 14]
    assert attached.execute_all_sync("environment", "FLAVOUR") == ["mint"] * 4
    assert attached.execute_all_sync("environment", "CUDA_VISIBLE_DEVICES") == ["0", "1", "0", "1"]


def test_the_next_agent_adopts_what_is_there(agent, tmp_path):
    plan = orders(group())
    agent.until(plan, all_ready)
    before = workergroups.attach("trainer").execute_all_sync("pid")
    other = tmp_path / "next"
    other.mkdir()
    reports = Agent(other).until(plan, all_ready)
    assert reports == agent.exchange.read_reports().to_json()
    assert workergroups.attach("trainer").execute_all_sync("pid") == before


def test_a_part_of_a_pool_seats_only_that_part(agent):
    plan = orders(group(count=2), group("other", count=2, seats=({"pool": "actors", "start": 2, "count": 2},)))
    agent.until(plan, lambda reports: all_ready(reports) and reports["groups"]["other"]["report"]["readyCount"] == 2)
    nodes = {
        name: set(workergroups.attach(name).execute_all_sync("environment", "CUDA_VISIBLE_DEVICES"))
        for name in ("trainer", "other")
    }
    assert nodes == {"trainer": {"0", "1"}, "other": {"0", "1"}}


def test_a_constructor_that_raises_is_reported_with_its_last_line(agent):
    reports = agent.until(
        orders(group(init_kwargs={"fail_on": 2})), lambda reports: reports["groups"]["trainer"]["report"]["failures"]
    )
    (failure,) = reports["groups"]["trainer"]["report"]["failures"]
    assert (failure["rank"], failure["reason"]) == (2, "ConstructorFailed")
    assert failure["message"] == "ValueError: rank 2 was told to fail"


def failed(reports):
    return reports["groups"]["trainer"]["report"]["state"] == "LaunchFailed"


def test_a_class_that_does_not_import_is_reported_with_its_last_line(agent):
    reports = agent.until(orders(group(), code="import no_such_module"), failed)
    assert reports["groups"]["trainer"]["report"]["message"] == "ModuleNotFoundError: No module named 'no_such_module'"


def test_arguments_that_the_constructor_does_not_take_are_reported_before_any_rank_exists(agent):
    reports = agent.until(orders(group(init_kwargs={"colour": "red"})), failed)
    report = reports["groups"]["trainer"]["report"]
    assert "colour" in report["message"]
    assert report["created"] == 0


def test_a_config_map_that_is_missing_is_named_and_mended_when_it_comes(agent):
    trainer = group()
    reports = agent.until(
        orders(trainer, code=None), lambda reports: reports["groups"]["trainer"]["report"]["state"] == "WaitingForCode"
    )
    assert "there is no ConfigMap code" in reports["groups"]["trainer"]["report"]["message"]
    agent.until(orders(trainer), all_ready)


def test_a_killed_process_is_reported_and_the_others_go_on(agent):
    plan = orders(group())
    agent.until(plan, all_ready)
    victim = workergroups.attach("trainer").execute_all_sync("pid")[3]
    os.kill(victim, signal.SIGKILL)
    reports = agent.until(plan, lambda reports: reports["groups"]["trainer"]["report"]["failures"], seconds=5)
    report = reports["groups"]["trainer"]["report"]
    assert report["failures"][0]["reason"] == "ProcessDied"
    assert (report["failures"][0]["rank"], report["ready"]) == (3, "0-2")


def test_what_has_no_owner_any_more_is_removed(agent):
    agent.until(orders(group()), all_ready)
    agent.until(orders(), lambda _: not ray.util.list_named_actors(all_namespaces=True), seconds=10)
    replaced = orders(pools=(pool(uid="uid-of-another"),))
    agent.until(replaced, reserved)
    states = {
        entry["name"].split("/")[1]: entry["state"]
        for entry in ray.util.placement_group_table().values()
        if entry["state"] != "REMOVED"
    }
    assert states == {"uid-of-another": "CREATED"}
