"""Pools on a cluster of two nodes: one with 4 GPUs, one with 2."""

from __future__ import annotations

import os
import threading
import time
from collections import defaultdict

import pytest
import ray
from ray.cluster_utils import Cluster
from ray.util.placement_group import placement_group_table

from workergroups import (
    PlacementTimeoutError,
    PoolClosedError,
    RayClassWithInitArgs,
    RayResourcePool,
    RayWorkerGroup,
    ResourcePoolManager,
    merge_resource_pool,
    split_resource_pool,
)
from workergroups.ray_private.cluster_state import node_of_bundles

pytestmark = pytest.mark.usefixtures("two_nodes")


class Probe:
    def where(self):
        return {
            "node": ray.get_runtime_context().get_node_id(),
            "rank": int(os.environ["RANK"]),
            "local": (int(os.environ["RAY_LOCAL_RANK"]), int(os.environ["RAY_LOCAL_WORLD_SIZE"])),
            "cuda": os.environ.get("CUDA_VISIBLE_DEVICES"),
            "hip": os.environ.get("HIP_VISIBLE_DEVICES"),
        }


@pytest.fixture(scope="module")
def two_nodes(ray_environment, rays):
    rays.stop()
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 8, "num_gpus": 4, "include_dashboard": False})
    cluster.add_node(num_cpus=4, num_gpus=2)
    ray.init(address=cluster.address, log_to_driver=False)
    yield
    ray.shutdown()
    cluster.shutdown()


def probe(pool, **arguments):
    with RayWorkerGroup(pool, RayClassWithInitArgs(Probe), **arguments) as group:
        return group.execute_all_sync("where")


def groups_left():
    return [group for group in placement_group_table().values() if group["state"] != "REMOVED"]


def test_ranks_know_their_place_on_nodes_that_differ():
    with RayResourcePool([1, 3, 1], max_colocate_count=2) as pool:
        ranks = probe(pool)
    assert [rank["rank"] for rank in ranks] == [0, 1, 2, 3, 4]
    assert [rank["local"] for rank in ranks] == [(0, 1), (0, 3), (1, 3), (2, 3), (0, 1)]
    assert ranks[1]["node"] == ranks[2]["node"] == ranks[3]["node"]


def test_each_rank_sees_its_own_device_only_whatever_the_vendor():
    with RayResourcePool([4], max_colocate_count=2) as pool:
        nvidia, amd = probe(pool), probe(pool, device_name="amd")
    assert sorted(rank["cuda"] for rank in nvidia) == ["0", "1", "2", "3"]
    assert {rank["hip"] for rank in nvidia} == {None}
    assert [rank["hip"] for rank in amd] == [rank["cuda"] for rank in amd] == [rank["cuda"] for rank in nvidia]


def test_a_pool_splits_across_nodes_and_again():
    with RayResourcePool([4, 2], max_colocate_count=1) as pool:  # no node has room for both
        first, rest = split_resource_pool(pool, [3, 3])
        middle, last = split_resource_pool(rest, [2, 1])
        assert [part.world_size for part in (first, rest, middle, last)] == [3, 3, 2, 1]
        assert rest.store == [1, 2]
        assert middle.local_world_size_list() == [1, 1]

        assert merge_resource_pool(middle, last).store == [1, 2]
        ranks = probe(middle)
        assert [rank["rank"] for rank in ranks] == [0, 1]
        assert ranks[0]["node"] != ranks[1]["node"]
    assert not groups_left()


@pytest.mark.parametrize(("size", "message"), [(3, "does not divide"), ([1, 2], "sum to"), ([4, 0], "positive")])
def test_a_split_must_add_up(size, message):
    with RayResourcePool([4]) as pool, pytest.raises(ValueError, match=message):
        split_resource_pool(pool, size)


def test_pools_that_differ_do_not_merge():
    with pytest.raises(ValueError, match="equal max_colocate_count, not 1 and 2"):
        merge_resource_pool(RayResourcePool([1], max_colocate_count=1), RayResourcePool([1], max_colocate_count=2))


def test_a_pool_that_does_not_fit_names_the_short_resource_and_leaves_nothing():
    pool = RayResourcePool([5], name_prefix="big", max_colocate_count=1, timeout=0.5)
    for _ in range(2):  # the second try must fail for the same reason, not for a name that the first one left
        started = time.monotonic()
        with pytest.raises(PlacementTimeoutError, match=r"GPU: 5 required on one node, the best node has 4 free of 4"):
            pool.get_placement_groups()
        assert time.monotonic() - started < 5
    assert not groups_left()


def test_a_pool_that_waits_for_another_names_what_is_taken():
    with RayResourcePool([4, 2], max_colocate_count=1) as first:
        first.get_placement_groups()
        with pytest.raises(PlacementTimeoutError, match=r"GPU: 1 required .* 0 free of"):
            RayWorkerGroup(RayResourcePool([1], max_colocate_count=1, timeout=0.5), RayClassWithInitArgs(Probe))


def test_a_pool_does_not_take_its_large_node_for_its_small_group():
    others = [RayResourcePool([2], max_colocate_count=1) for _ in range(3)]
    by_node = defaultdict(list)
    for other in others:
        (group,) = other.get_placement_groups()
        by_node[node_of_bundles(group)[0]].append(other)
    max(by_node.values(), key=len)[0].close()  # leaves two of four GPUs free on one node, and none on the other

    leave = threading.Timer(2, lambda: [other.close() for other in others])
    leave.start()
    with RayResourcePool([2, 4], max_colocate_count=1, timeout=20) as pool:
        assert [group.bundle_count for group in pool.get_placement_groups()] == [2, 4]
    leave.join()


def test_cpus_can_be_what_is_short():
    with pytest.raises(PlacementTimeoutError, match=r"CPU: 10 required .* 8 free of 8"):
        RayResourcePool([1], use_gpu=False, timeout=0.5).get_placement_groups()


def test_two_pools_of_one_name():
    with RayResourcePool([1], name_prefix="twin", max_colocate_count=1) as pool:
        pool.get_placement_groups()
        with pytest.raises(ValueError, match="another name_prefix"):
            RayResourcePool([1], name_prefix="twin", max_colocate_count=1).get_placement_groups()


def test_a_closed_pool_has_given_everything_back():
    with RayResourcePool([1, 1], detached=True, max_colocate_count=1) as pool:
        group = RayWorkerGroup(pool, RayClassWithInitArgs(Probe), detached=True)
        group.execute_all_sync("where")
    assert not groups_left()
    assert not ray.util.list_named_actors(all_namespaces=True)
    with pytest.raises(PoolClosedError, match="is closed"):
        pool.get_placement_groups()


def test_a_device_without_a_resource_is_refused():
    with pytest.raises(ValueError, match="no accelerator resource is known for device_name 'tpu'"):
        RayResourcePool([1]).get_placement_groups(device_name="tpu")


def test_ranks_cannot_use_gpus_that_the_pool_does_not_have():
    with pytest.raises(ValueError, match="needs a pool with GPUs"):
        RayWorkerGroup(RayResourcePool([1], use_gpu=False), RayClassWithInitArgs(Probe), use_gpu=True)


def test_a_manager_makes_the_pools_of_roles_if_there_are_gpus_enough():
    manager = ResourcePoolManager({"train": [2, 1], "score": [1]}, {"actor": "train", "critic": "train", "rm": "score"})
    manager.create_resource_pool()
    assert manager.get_n_gpus() == 4
    assert manager.get_resource_pool("actor") is manager.get_resource_pool("critic")
    assert manager.get_resource_pool("rm").store == [1]
    with pytest.raises(KeyError, match="no pool for role ref; there are pools for actor, critic, rm"):
        manager.get_resource_pool("ref")
    with pytest.raises(ValueError, match="need 7 GPUs, but 6 are free"):
        ResourcePoolManager({"train": [4, 3]}, {}).create_resource_pool()


def test_a_manager_counts_gpus_that_were_given_back_a_moment_ago():
    for _ in range(3):
        manager = ResourcePoolManager({"all": [4, 2]}, {"actor": "all"}, max_colocate_count=1)
        manager.create_resource_pool()
        with manager.get_resource_pool("actor") as pool:
            pool.get_placement_groups()
