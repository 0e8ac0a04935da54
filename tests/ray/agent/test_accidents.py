"""Whatever users create in Ray by accident, the agent keeps serving."""

import json

import pytest
import ray
from ray.util import placement_group, remove_placement_group

import workergroups
from tests.ray.agent.planned import Group, launch
from tests.ray.agent.test_executor import all_ready
from workergroups.debugger import announced
from workergroups.naming import NAMESPACE
from workergroups.ray_private.gcs import Gcs
from workergroups_agent import account, orders
from workergroups_api.launch import MAX_ENV_BYTES, env_bytes

NINES = "9" * 5000
NAMES = [f"g/u/1/0-of-{NINES}", f"{'x' * 100_000}-of-", "g/u/\u0661/0-of-\u0661", "\N{PILE OF POO}-of-\n\0", "//0/"]


@ray.remote(num_cpus=0)
class Actor:
    def answer(self):
        return True


@pytest.fixture(params=[NAMESPACE, "a-users-own"])
def odd_names(cluster, request):
    """Actors and placement groups of users, in the Ray namespace of ours and in one of theirs."""
    actors = [Actor.options(name=name, namespace=request.param).remote() for name in NAMES]
    placements = [placement_group([{"memory": 1}], name=name) for name in NAMES]
    ray.get([actor.answer.remote() for actor in actors])
    yield
    for actor in actors:
        ray.kill(actor)
    for placement in placements:
        remove_placement_group(placement)


def test_odd_names_of_actors_and_placement_groups_stop_nobody(agent, odd_names):
    trainer = Group()
    assert set(agent.until(all_ready, trainer).groups) == {"trainer"}


VALUES = [
    b"",
    b"\xff\xfe",
    b"[" * 1_000_000,
    NINES.encode(),
    json.dumps({"launches": [{"uid": NINES}] * 1000}).encode(),
]


@pytest.mark.parametrize("value", VALUES, ids=["empty", "no text", "nested", "digits", "list"])
def test_odd_values_in_the_key_value_store_stop_nobody(agent, value):
    gcs = Gcs.of_driver()
    keys = {orders.NAMESPACE: ["stamp", "plan", "launch/x"], account.NAMESPACE: ["heartbeat", "account"]}
    odd = [(namespace, key) for namespace, names in keys.items() for key in names]
    odd += [(announced.KV_NAMESPACE, f"{number}-{NINES}") for number in range(300)]
    for namespace, key in odd:
        gcs.put(namespace, key, value)
    try:
        agent.until(all_ready, Group())
    finally:
        for namespace, key in odd:
            gcs.delete(namespace, key)


def test_an_environment_that_no_process_can_have_is_refused_and_the_neighbours_ranks_start(agent):
    """Ray would wait for a minute for such a process, and start no other on the node meanwhile."""
    values = {f"A{number}": "x" * 100_000 for number in range(6)}
    large, neighbour = (
        Group("large", launch=launch(env=values)),
        Group("neighbour", bundles=(("actors", 2, 2),)),
    )

    def is_settled(reports):
        return reports.groups["large"].report.message and reports.groups["neighbour"].report.ready == "0-1"

    report = agent.until(is_settled, large, neighbour, seconds=55).groups["large"].report
    assert (report.state, report.created) == ("LaunchFailed", 0)
    assert f"may have {MAX_ENV_BYTES}" in report.message


def test_the_largest_environment_that_is_let_through_can_be_had(agent):
    room = MAX_ENV_BYTES - env_bytes({"A": ""})
    trainer = Group(launch=launch(env={"A": "x" * room}))
    assert env_bytes(trainer.launch.env) == MAX_ENV_BYTES
    agent.until(all_ready, trainer)
    assert workergroups.attach("trainer").execute_all_sync("environment", "A") == ["x" * room] * 2
