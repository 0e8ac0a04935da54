"""What pools say of themselves before anything is reserved."""

from __future__ import annotations

import random

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


def test_pools_without_a_name_have_different_ones_whatever_the_program_does_with_random_numbers():
    names = set()
    for _ in range(2):
        random.seed(42)
        names.add(RayResourcePool([1]).name_prefix)
    assert len(names) == 2


def test_the_names_of_pools_leave_the_programs_random_numbers_alone():
    random.seed(42)
    expected = random.random()
    random.seed(42)
    RayResourcePool([1])
    assert random.random() == expected


def test_verls_name_for_no_device_stands_for_logical_gpus():
    assert accelerator_resource("cpu") == "GPU"
