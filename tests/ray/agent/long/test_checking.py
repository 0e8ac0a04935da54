"""What the nodes of a planned pool say of themselves, and what they do together; and that nothing of it is left."""

import time
from contextlib import contextmanager

import pytest
import ray
from ray.util import placement_group_table
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from tests.ray.agent.planned import NODE_GROUP, pool
from workergroups import attach_pool
from workergroups.checking import all_reduce, probes
from workergroups.checking.asking import answer
from workergroups.waiting import poll

SHAPES = {"reserved": {"devices": 4}, "free": {"devices": 4, "reserves": False}}


def question(**more):
    return {
        "pool": "actors",
        "node_group": NODE_GROUP,
        "nodes": 2,
        "node_ids": None,
        "vendor": "none",
        "processes": 1,
        "devices": 4,
        "device": "GPU",
        "is_reserved": True,
        "shared_memory": None,
        "placement_name": "",
        "writable": [],
        "fabric": False,
        **more,
    }


def joined(reports):
    return reports.pools["actors"].report.joined_nodes == 2


def is_reserved(reports):
    return not reports.pools["actors"].report.nodes


def test_each_node_answers_and_reaches_the_others(agent, tmp_path):
    agent.until(joined)
    said = answer(question(writable=[str(tmp_path), "/proc"]))
    assert (len(said["nodes"]), said["silent"], said["all_reduce"]) == (2, {}, None)
    for each in said["nodes"]:
        assert each["versions"]["Ray"] == ray.__version__
        assert (each["unreachable"], list(each["unwritable"])) == ({}, ["/proc"])
    assert poll(lambda: not ray.util.list_named_actors(all_namespaces=True), timeout=10)


def test_a_node_that_does_not_answer_is_named_and_the_others_are_heard(agent, monkeypatch):
    agent.until(joined)
    first, second = probes.nodes_of(NODE_GROUP)
    monkeypatch.setattr(probes, "LOOK_SECONDS", 15)
    monkeypatch.setattr(probes, "on_node", on_node_but_hang_on(first))
    found, silent = probes.look_at_all([first, second], question())
    assert [each["node"] for each in found] == [second.name]
    assert silent == {first.name: "no answer within 15 s"}


def test_a_node_that_is_lost_is_named(agent):
    agent.until(joined)
    gone = probes.PoolNode("0" * 56, "lost", "192.0.2.1")
    found, silent = probes.look_at_all([*probes.nodes_of(NODE_GROUP), gone], question())
    assert (len(found), list(silent)) == (2, ["lost"])


@pytest.mark.parametrize("shape", ["reserved", "free"])
def test_all_processes_of_a_pool_sum_up_together_and_nothing_of_it_is_left(agent, shape):
    before = agent.until(is_reserved if shape == "reserved" else joined, pools=(pool(**SHAPES[shape]),))
    placed = placements()
    said = answer(question(fabric=True, is_reserved=shape == "reserved"))
    assert said["not_measured"] is None
    assert (said["all_reduce"]["backend"], said["all_reduce"]["processes"]) == ("gloo", 2)
    assert said["all_reduce"]["bus_bandwidth"] > 0
    assert placements() == placed
    if shape == "reserved":
        assert agent.go_on_until(is_reserved) == before


def test_without_torch_nothing_is_measured(agent, monkeypatch):
    agent.until(joined)
    found = [{"node": each.name, "versions": {}} for each in probes.nodes_of(NODE_GROUP)]
    monkeypatch.setattr("workergroups.checking.asking.look_at_all", lambda *_: (found, {}))
    assert "no torch that can be imported" in answer(question(fabric=True))["not_measured"]


def test_devices_that_a_job_holds_are_not_waited_for_long(agent, monkeypatch):
    agent.until(joined, pools=(pool(**SHAPES["free"]),))
    monkeypatch.setattr(all_reduce, "_RESERVE_SECONDS", 3)
    placed = placements()
    with held():
        said = answer(question(fabric=True, is_reserved=False))
    assert "was not free within 3 s: a job holds it" in said["not_measured"]
    assert placements() == placed


def test_a_process_that_has_no_room_next_to_groups_is_reported_as_such(agent, monkeypatch):
    agent.until(is_reserved, pools=(pool(**SHAPES["reserved"]),))
    monkeypatch.setattr(all_reduce, "_START_SECONDS", 8)
    first, *_ = attach_pool("actors", timeout=10).bundles()
    with held(PlacementGroupSchedulingStrategy(first.placement_group, first.bundle_index)):
        said = answer(question(fabric=True))
    assert "a bundle's device has room for max_colocate_count ranks" in said["not_measured"]


@contextmanager
def held(where=None):
    """All devices of a node, or of a bundle, are taken."""

    class Holder:
        def hold(self):
            pass

    holder = ray.remote(num_gpus=4, num_cpus=0, scheduling_strategy=where)(Holder).remote()
    ray.get(holder.hold.remote(), timeout=30)
    yield
    ray.kill(holder)


def on_node_but_hang_on(silent):
    on_node = probes.on_node

    class Hanging:
        def look(self, name, question):
            time.sleep(60)

    def on_one(node):
        return on_node(node) if node != silent.id else lambda _: ray.remote(num_cpus=0)(Hanging)

    return on_one


def placements():
    return {number for number, group in placement_group_table().items() if group["state"] != "REMOVED"}
