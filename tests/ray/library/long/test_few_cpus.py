"""Seed 001 as it is written: a Ray of four CPUs, and a pool for which the program chose no `max_colocate_count`."""

import warnings

import pytest
import ray

from tests.ray.library.test_seed_001 import GPUAccumulator, GPUAccumulatorDecorator
from workergroups import (
    PlacementImpossibleError,
    RayClassWithInitArgs,
    RayResourcePool,
    RayWorkerGroup,
    merge_resource_pool,
    split_resource_pool,
)

pytestmark = pytest.mark.usefixtures("laptop")


@pytest.fixture(scope="module")
def laptop(ray_environment, rays):
    rays.stop()
    ray.init(num_cpus=4, num_gpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def test_two_groups_share_a_pool_of_two():
    with warnings.catch_warnings(record=True) as said, RayResourcePool([2], use_gpu=True) as pool:
        warnings.simplefilter("always")
        assert pool.max_colocate_count == 10
        group = RayWorkerGroup(pool, RayClassWithInitArgs(cls=GPUAccumulator))
        assert group.execute_all_sync("add", x=[1, 3]) == [1, 4]
        assert group.execute_all_sync("get_value") == [1, 4]
        decorated = RayWorkerGroup(pool, RayClassWithInitArgs(cls=GPUAccumulatorDecorator))
        assert decorated.add(10) == [10, 11]
        assert pool.max_colocate_count == 2
    (warning,) = said
    assert "reserving 2 in each, so at most 2 groups can use the pool at a time" in str(warning.message)


@pytest.mark.filterwarnings("error")
def test_more_groups_share_a_pool_without_devices():
    with RayResourcePool([4], use_gpu=False) as pool:
        groups = [RayWorkerGroup(pool, RayClassWithInitArgs(cls=GPUAccumulator)) for _ in range(2)]
        assert [group.execute_all_sync("get_value") for group in groups] == [[0, 1, 2, 3], [0, 1, 2, 3]]
        assert pool.max_colocate_count == 1


@pytest.mark.filterwarnings("ignore:Ray has too few CPUs")
def test_its_parts_and_what_is_merged_have_the_same_number():
    with RayResourcePool([2]) as pool:
        one, two = split_resource_pool(pool, 1)
        assert [part.max_colocate_count for part in (one, two, merge_resource_pool(one, two))] == [2, 2, 2]


def test_the_number_that_a_program_chooses_counts():
    with pytest.raises(PlacementImpossibleError, match="CPU: 6 required on one node, the best node has 4 free of 4"):
        RayResourcePool([2], max_colocate_count=3).get_placement_groups()


@pytest.mark.filterwarnings("error")
def test_only_what_is_short_is_named():
    with pytest.raises(PlacementImpossibleError, match=r"started: GPU: 3 required on one node") as refused:
        RayResourcePool([3]).get_placement_groups()
    assert "CPU:" not in str(refused.value)
