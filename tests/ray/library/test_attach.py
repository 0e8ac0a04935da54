"""Ranks as the in-cluster agent makes them, found again by drivers that do not have their class."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
import ray

from workergroups import GroupNotFoundError, attach
from workergroups.naming import NAMESPACE, RankName

pytestmark = pytest.mark.usefixtures("local_ray")

CREATOR = """
import ray
from workergroups import RayClassWithInitArgs, RayResourcePool
from workergroups.naming import NAMESPACE, RankName
from workergroups.single_controller.ray.ranks import create_ranks
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

ray.init()
pool = RayResourcePool([2], max_colocate_count=2, name_prefix="pool", detached=True)


@ray.remote(num_cpus=0)
def launch(seats, incarnation, start, count):
    from tests.ray.library.trainer_code import Trainer

    names = [str(RankName("trainer", "uid1", incarnation, rank, 2)) for rank in range(2)]
    ranks = create_ranks(
        RayClassWithInitArgs(Trainer, start), seats[:count], names=names[:count], namespace=NAMESPACE, detached=True,
        num_gpus=0.5,
    )
    return [rank._actor_id.hex() for rank in ranks]


first = PlacementGroupSchedulingStrategy(pool.seats()[0].placement_group, 0)
launcher = launch.options(scheduling_strategy=first)
print(ray.get([launcher.remote(pool.seats(), 1, 100, 2), launcher.remote(pool.seats(), 2, 200, 1)]))
"""

DRIVER = """
import json, sys
from workergroups import attach

group = attach("trainer", timeout=30)
results = {
    "names": group.worker_names,
    "add": group.add(10),
    "head": group.head(),
    "half": group.half(6),
    "plain": group.execute_all_sync("plain", x=[1, 2]),
    "master": [group.master_address, group.master_port],
    "imported": any(name.endswith("trainer_code") for name in sys.modules),
}
group.close()
print(json.dumps(results))
"""


def run(program, **environment):
    address = ray.get_runtime_context().gcs_address
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],  # -P: not with the modules of the directory in which it starts
        env={**os.environ, "RAY_ADDRESS": address, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def created(local_ray):
    """Incarnation 1 of 'trainer' complete, incarnation 2 with one rank of two; their creator has exited."""
    run(CREATOR)


def test_a_driver_without_the_class_calls_the_ranks_that_outlived_their_creator(created):
    results = json.loads(run(DRIVER, PYTHONPATH=""))
    assert results["names"] == [f"trainer/uid1/1/{rank}-of-2" for rank in range(2)]
    assert results["add"] == [110, 111]
    assert results["head"] == 0
    assert results["half"] == 6
    assert results["plain"] == [1, 3]
    assert results["master"][1].isdigit()
    assert not results["imported"]


def test_closing_an_attached_group_leaves_the_ranks_alone(created):
    with attach("trainer") as group:
        before = group.add(0)
    with attach("trainer") as group:
        assert group.add(1) == [value + 1 for value in before]


def test_attaching_says_how_many_ranks_are_there(created):
    ray.kill(ray.get_actor(str(RankName("trainer", "uid1", 1, 1, 2)), namespace=NAMESPACE))
    with pytest.raises(GroupNotFoundError, match="1 of 2 ranks of group 'trainer' are there"):
        attach("trainer", timeout=0.5)


def test_an_unknown_group_names_those_that_exist(created):
    with pytest.raises(GroupNotFoundError, match=r"no group 'critic'.*the groups here: 'trainer'"):
        attach("critic", timeout=0.2)
