"""verl's own classes, unmodified, on the bundles that a pool has reserved: part of `make test-verl`."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
import ray
from transfer_queue.storage.bootstrap import simple_storage_bootstrap
from verl.single_controller.base import Worker
from verl.single_controller.base.decorator import Dispatch, register
from verl.single_controller.ray import RayClassWithInitArgs, RayResourcePool, RayWorkerGroup, ResourcePoolManager
from verl.single_controller.ray.base import merge_resource_pool, split_resource_pool

import workergroups

# So that Ray's processes find this file's classes.
ENVIRONMENT = {"PYTHONPATH": os.getcwd()}
# A program of another job, which takes two bundles of each node and keeps them until its standard input is closed.
OTHER_JOB = """
import ray, sys
ray.init(address=sys.argv[1], log_to_driver=False)
from verl.single_controller.ray import RayResourcePool
RayResourcePool([2, 2], max_colocate_count=1).get_placement_groups()
print("taken", flush=True)
sys.stdin.read()
"""
OTHERS_QUEUE = """
import ray, sys
ray.init(address=sys.argv[1], log_to_driver=False)
class Queue:
    def ready(self): pass
queue = ray.remote(Queue).options(name="TransferQueueController", namespace="transfer_queue").remote()
ray.get(queue.ready.remote())
print("job", ray.get_runtime_context().get_job_id(), flush=True)
sys.stdin.read()
"""


@ray.remote
class Actor(Worker):
    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def place(self):
        placed = ray.util.get_current_placement_group()
        return ray.get_runtime_context().get_node_id(), placed.id.hex(), os.environ["CUDA_VISIBLE_DEVICES"]


@pytest.fixture
def nodes(agent):
    agent.until(lambda said: said.pools["actors"].report.reserved_nodes == 2)
    return [node.name.node_id for node in workergroups.attaching.pools.placed_nodes("actors")]


def places(resource_pool):
    return RayWorkerGroup(resource_pool, RayClassWithInitArgs(cls=Actor)).place()


def created(shape, **more):
    manager = ResourcePoolManager({"global_pool": shape}, mapping={"actor": "global_pool"}, **more)
    manager.create_resource_pool()
    return manager.get_resource_pool("actor")


def test_without_reserved_bundles_verl_works_as_before(cluster):
    """The first test, since the bundles of a pool that is gone stay until its pods end, and here are none."""
    ray.init(address=cluster.address, log_to_driver=False)
    try:
        assert len(places(created([4]))) == 4
    finally:
        ray.shutdown()


def test_two_pools_get_disjoint_bundles_in_the_order_of_the_nodes_and_a_third_is_refused(nodes):
    one, two = created([2, 2]), created([2, 2], max_colocate_count=2)
    ours, theirs = places(one), places(two)
    assert [node for node, _, _ in ours] == [node for node, _, _ in theirs] == [nodes[0]] * 2 + [nodes[1]] * 2
    seen = [(node, device) for node, _, device in (*ours, *theirs)]
    assert len(set(seen)) == 8
    with pytest.raises(ValueError, match=r"needs 1 bundles .* pool actors: 0 \+ 0 of 4 \+ 4 on its nodes"):
        created([1])
    with pytest.raises(workergroups.PlacementImpossibleError, match="pool actors"):
        RayResourcePool([1]).get_placement_groups()


def test_parts_of_a_pool_run_where_the_whole_does_and_merge_again(nodes):
    whole = created([4])
    on_whole = places(whole)
    first, second = split_resource_pool(whole, 2)
    assert [*places(first), *places(second)] == on_whole
    other = created([4])
    assert {node for node, _, _ in places(merge_resource_pool(whole, other))} == set(nodes)


def test_what_a_job_has_taken_is_free_when_it_has_ended(nodes, cluster):
    command = [sys.executable, "-c", OTHER_JOB, cluster.address]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as job:
        assert any(line == "taken\n" for line in job.stdout)
        with pytest.raises(ValueError, match=r"2 \+ 2 of 4 \+ 4"):
            created([4, 4])
        job.stdin.close()
        assert job.wait(30) == 0
    assert len(places(created([4, 4]))) == 8


class Queue:
    """Stands for the controller of verl's TransferQueue."""


def test_a_job_that_has_joined_the_queue_of_another_job_is_refused(nodes, cluster, monkeypatch):
    monkeypatch.setitem(sys.modules, "transfer_queue.interface", SimpleNamespace(_TQ_CONTROLLER=object()))
    created([1])
    own = ray.remote(Queue).options(name="TransferQueueController", namespace="transfer_queue").remote()
    created([1])
    ray.kill(own)
    command = [sys.executable, "-c", OTHERS_QUEUE, cluster.address]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as job:
        number = next(line.split()[1] for line in job.stdout if line.startswith("job "))
        with pytest.raises(ValueError, match=f"job {number} of this Ray cluster has a TransferQueue"):
            created([1])
        job.stdin.close()
        assert job.wait(30) == 0


def test_storage_units_of_the_queue_are_not_on_the_head_which_is_too_small_for_its_share(nodes):
    units = simple_storage_bootstrap.get_node_round_robin_scheduling_strategies(8)
    assert sorted(unit.node_id for unit in units) == sorted(nodes * 4)
    with_cpus = simple_storage_bootstrap.get_node_round_robin_scheduling_strategies(8, "CPU")
    assert len({unit.node_id for unit in with_cpus}) == 3


def test_a_pool_of_ours_works_in_verls_classes(nodes):
    whole = workergroups.attach_pool("actors")
    halves = split_resource_pool(whole, 4)
    assert [node for node, _, _ in places(halves[1])] == [nodes[1]] * 4
    quarter = split_resource_pool(halves[1], 2)[1]
    assert [device for _, _, device in places(quarter)] == ["2", "3"]
    assert merge_resource_pool(halves[1], halves[0]).store == [4, 4]
    assert [node for node, _, _ in places(merge_resource_pool(halves[1], halves[0]))] == [nodes[1]] * 4 + [nodes[0]] * 4


def test_a_pool_of_verls_is_refused_by_ours(nodes):
    with pytest.raises(TypeError, match=r"resource_pool is a verl\.single_controller\.ray\.base\.RayResourcePool"):
        workergroups.RayWorkerGroup(RayResourcePool([1]), workergroups.RayClassWithInitArgs(Actor))
    with pytest.raises(TypeError, match="cannot be merged"):
        merge_resource_pool(RayResourcePool([1]), workergroups.attach_pool("actors"))
