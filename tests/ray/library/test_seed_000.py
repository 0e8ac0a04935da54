"""The program of seed 000, statement by statement, with plain numbers for CUDA tensors."""

from __future__ import annotations

import re

import pytest
import ray

from workergroups.single_controller.base import Worker
from workergroups.single_controller.base.decorator import Dispatch, Execute, collect_all_to_all, register
from workergroups.single_controller.ray.base import (
    RayClassWithInitArgs,
    RayResourcePool,
    RayWorkerGroup,
    merge_resource_pool,
)

pytestmark = pytest.mark.usefixtures("local_ray")


@ray.remote
class Accumulator:
    def __init__(self):
        self.value = 0

    def add(self, x):
        self.value += x

    def get_value(self):
        return self.value


@ray.remote
class GPUAccumulator(Worker):
    def __init__(self) -> None:
        super().__init__()
        self.value = float(self.rank)

    def add(self, x):
        self.value += x
        return self.value


@ray.remote
class GPUAccumulatorDecorator(Worker):
    def __init__(self) -> None:
        super().__init__()
        self.value = float(self.rank)

    @register(Dispatch.ONE_TO_ALL)
    def add(self, x):
        self.value = self.value + x
        return self.value


def two_to_all_dispatch_fn(worker_group, *args, **kwargs):
    for arg in args:
        assert len(arg) == 2
        for i in range(worker_group.world_size - 2):
            arg.append(arg[i % 2])
    for v in kwargs.values():
        assert len(v) == 2
        for i in range(worker_group.world_size - 2):
            v.append(v[i % 2])
    return args, kwargs


@ray.remote
class TwoToAll(Worker):
    def __init__(self, x) -> None:
        super().__init__()
        self._x = x

    def foo(self, y):
        return self._x + y

    @register(dispatch_mode=Dispatch.ALL_TO_ALL, execute_mode=Execute.RANK_ZERO)
    def foo_rank_zero(self, x, y):
        return self._x + y + x

    @register(dispatch_mode={"dispatch_fn": two_to_all_dispatch_fn, "collect_fn": collect_all_to_all})
    def foo_custom(self, x, y):
        return self._x + y + x


@pytest.fixture(scope="module")
def pool(local_ray):
    with RayResourcePool([4], use_gpu=True) as pool:
        yield pool


@pytest.fixture(scope="module")
def new_pool(local_ray):
    with RayResourcePool([4], use_gpu=True, name_prefix="a") as pool:
        yield pool


def test_an_accumulator_is_an_actor_of_rays():
    accumulator = Accumulator.remote()
    assert ray.get(accumulator.get_value.remote()) == 0
    accumulator.add.remote(10)
    assert ray.get(accumulator.get_value.remote()) == 10


def test_each_rank_adds_its_own_number(pool):
    with RayWorkerGroup(pool, RayClassWithInitArgs(cls=GPUAccumulator)) as group:
        assert group.execute_all_sync("add", x=[1, 1, 1, 1]) == [1, 2, 3, 4]
        assert pool.local_rank_list() == [0, 1, 2, 3]
        assert pool.local_world_size_list() == [4, 4, 4, 4]
        assert all("GPUAccumulator" in repr(worker) for worker in group.workers)
        assert re.fullmatch(r"\w{6}GPUAccumulator_0:0", group.worker_names[0])
        prefix = group.worker_names[0][:6]
        assert group.worker_names == [f"{prefix}GPUAccumulator_0:{i}" for i in range(4)]


def test_groups_share_the_gpus_of_merged_pools(pool, new_pool):
    merged = merge_resource_pool(pool, new_pool)
    assert new_pool.local_rank_list() == [0, 1, 2, 3]
    assert merged.local_rank_list() == [0, 1, 2, 3, 0, 1, 2, 3]

    class_with_args = RayClassWithInitArgs(cls=GPUAccumulator)
    with (
        RayWorkerGroup(pool, class_with_args),
        RayWorkerGroup(new_pool, class_with_args) as group_new,
        RayWorkerGroup(merged, class_with_args) as group_merged,
    ):
        assert group_new.execute_all_sync("add", x=[2, 2, 2, 2]) == [2, 3, 4, 5]
        assert group_merged.execute_all_sync("add", x=[3] * 8) == [3, 4, 5, 6, 7, 8, 9, 10]


def test_one_to_all_gives_every_rank_the_same(pool, new_pool):
    merged = merge_resource_pool(pool, new_pool)
    with RayWorkerGroup(merged, RayClassWithInitArgs(cls=GPUAccumulatorDecorator)) as group:
        assert group.add(x=10) == [10, 11, 12, 13, 14, 15, 16, 17]


def test_custom_dispatch_and_rank_zero(pool):
    with RayWorkerGroup(pool, RayClassWithInitArgs(cls=TwoToAll, x=2)) as group:
        assert group.foo_custom(x=[1, 2], y=[5, 6]) == [8, 10, 8, 10]
        assert group.foo_rank_zero(x=1, y=2) == 5
