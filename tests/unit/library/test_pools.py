"""What pools say of themselves before anything is reserved."""

from __future__ import annotations

import pytest

from workergroups import RayResourcePool, ResourcePool
from workergroups.single_controller.ray.resource_pool import accelerator_resource


def test_rank_lists_follow_the_nodes_even_when_they_differ():
    pool = ResourcePool([3, 1, 2])
    assert pool.world_size == 6
    assert pool.local_rank_list() == [0, 1, 2, 0, 0, 1]
    assert pool.local_world_size_list() == [3, 3, 3, 1, 2, 2]


def test_a_node_can_be_added():
    pool = ResourcePool([2])
    pool.add_node(1)
    assert pool.store == pool() == [2, 1]


@pytest.mark.parametrize("arguments", [{"process_on_nodes": [2, 0]}, {"max_colocate_count": 0}])
def test_impossible_pools_are_refused(arguments):
    with pytest.raises(ValueError, match=r"positive|at least 1"):
        RayResourcePool(**arguments)


def test_verls_name_for_no_device_stands_for_logical_gpus():
    assert accelerator_resource("cpu") == "GPU"
