"""A rank that is recreated alone, while the other ranks of its incarnation keep running."""

import dataclasses
import os
import signal

import pytest
import ray
from ray.util import get_placement_group, placement_group_table, remove_placement_group

import workergroups
from tests.ray.agent.planned import Agent, Group, launch
from tests.ray.agent.test_executor import all_ready, ranks
from workergroups.errors import RankDiedError
from workergroups_agent.executor import launch_record

VARIABLES = ("RANK", "WORLD_SIZE", "RAY_LOCAL_RANK", "RAY_LOCAL_WORLD_SIZE", "WG_PREFIX", "WG_BACKEND", "OF_THE_USER")


def kill(agent, group, rank):
    """Kill a rank; return what the driver and the agent say of its death."""
    os.kill(group.execute_all_sync("pid")[rank], signal.SIGKILL)
    with pytest.raises(RankDiedError) as death:
        group.execute_all_sync("pid")
    report = ranks(agent.go_on_until(lambda reports: ranks(reports).failed == str(rank)))
    assert (report.created, report.ready_count, report.failures[0].reason) == (2, 1, "ProcessDied")
    return death.value, report.failures[0]


def environment(group):
    found = [group.execute_all_sync("environment", name) for name in VARIABLES]
    return list(zip(*found, strict=True))


def test_a_killed_rank_comes_back_alone_and_the_handle_goes_on(agent):
    trainer = Group(launch=launch(env={"OF_THE_USER": "x"}))
    agent.until(all_ready, trainer)
    group = workergroups.attach("trainer", timeout=20)
    pids, before, master = group.execute_all_sync("pid"), environment(group), group.master_port
    group.execute_all_sync("add", x=[5, 5])
    for killed, birth in ((1, 1), (0, 2), (1, 3)):
        death, failure = kill(agent, group, killed)
        assert (death.rank, death.reason, death.incarnation) == (killed, "ProcessDied", 1)
        assert failure.birth == (trainer.births or {}).get(killed)
        old = group.workers[killed]
        trainer = dataclasses.replace(trainer, births={**(trainer.births or {}), killed: birth})
        agent.until(lambda reports, birth=birth: all_ready(reports) and ranks(reports).birth == birth, trainer)
        assert group.renew(timeout=20) is group
        assert group.incarnation == 1
        now = group.execute_all_sync("pid")
        assert (now[1 - killed], now[killed] != pids[killed]) == (pids[1 - killed], True)
        assert environment(group) == before
        assert None not in group.execute_all_sync("environment", "MASTER_ADDR")
        assert group.resource_pool.world_size == 2
        with pytest.raises(ray.exceptions.RayActorError):
            ray.get(old.pid.remote())
        pids = now
    assert group.master_port != master, "the new rank 0 chose a port"
    assert group.execute_all_sync("environment", "MASTER_PORT") == [group.master_port] * 2
    assert launch_record.known() == set()


@pytest.mark.long
def test_what_others_have_in_memory_stays(agent):
    trainer = Group()
    agent.until(all_ready, trainer)
    group = workergroups.attach("trainer", timeout=20)
    assert group.execute_all_sync("add", x=[5, 5]) == [5, 6]
    kill(agent, group, 1)
    agent.until(all_ready, dataclasses.replace(trainer, births={1: 1}))
    assert group.renew(timeout=20).execute_all_sync("add", x=[0, 0]) == [5, 1]


def test_a_living_rank_is_replaced_and_no_driver_gets_the_old_one(agent):
    """It hangs, and the operator has it recreated."""
    trainer = Group()
    agent.until(all_ready, trainer)
    group = workergroups.attach("trainer", timeout=20)
    pids = group.execute_all_sync("pid")
    reborn = dataclasses.replace(trainer, births={0: 1})
    agent.until(lambda reports: all_ready(reports) and ranks(reports).birth == 1, reborn)
    first, second = group.renew(timeout=20).execute_all_sync("pid")
    assert (first != pids[0], second) == (True, pids[1])


@pytest.mark.long
def test_ranks_of_two_restarts_come_back_one_restart_after_the_other(agent):
    trainer = Group(bundles=(("actors", 0, 3),))
    agent.until(all_ready, trainer)
    group = workergroups.attach("trainer", timeout=20)
    pids = group.execute_all_sync("pid")
    for killed in (1, 2):
        os.kill(pids[killed], signal.SIGKILL)
    agent.go_on_until(lambda reports: ranks(reports).failed == "1-2")
    trainer = dataclasses.replace(trainer, births={1: 1, 2: 2})
    agent.until(lambda reports: all_ready(reports) and ranks(reports).birth == 2, trainer)
    first, *others = group.renew(timeout=20).execute_all_sync("pid")
    assert first == pids[0]
    assert set(others).isdisjoint(pids)
    assert launch_record.known() == set()


def test_a_successor_of_the_executor_finds_the_rank_and_creates_no_other(agent, tmp_path):
    trainer = Group()
    agent.until(all_ready, trainer)
    group = workergroups.attach("trainer", timeout=20)
    kill(agent, group, 1)
    trainer = dataclasses.replace(trainer, births={1: 1})
    agent.until(all_ready, trainer)
    pids = group.renew(timeout=20).execute_all_sync("pid")
    other = tmp_path / "next"
    other.mkdir()
    Agent(other).until(all_ready, trainer)
    assert group.renew(timeout=20).execute_all_sync("pid") == pids


def test_a_rank_whose_bundles_were_lost_comes_back_on_others_and_the_handle_knows_them(agent):
    trainer = Group(bundles=(("actors", 3, 2),))
    agent.until(all_ready, trainer)
    group = workergroups.attach("trainer", timeout=20)
    pids = group.execute_all_sync("pid")
    names = [table["name"] for table in placement_group_table().values() if table["state"] == "CREATED"]
    (of_second_node,) = (name for name in names if name.startswith("actors/uid-actors/1/"))
    remove_placement_group(get_placement_group(of_second_node))
    report = ranks(agent.go_on_until(lambda reports: ranks(reports).failed == "1"))
    assert report.ready == "0"
    agent.until(all_ready, dataclasses.replace(trainer, births={1: 1}))
    first, second = group.renew(timeout=20).execute_all_sync("pid")
    assert (first, second != pids[1]) == (pids[0], True)
    assert group.resource_pool.world_size == 2
