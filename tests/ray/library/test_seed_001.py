"""The program of seed 001 with plain numbers for CUDA tensors."""

from __future__ import annotations

import pytest
import ray

from workergroups.single_controller.base import Worker
from workergroups.single_controller.base.decorator import Dispatch, register
from workergroups.single_controller.ray.base import RayClassWithInitArgs, RayResourcePool, RayWorkerGroup

pytestmark = pytest.mark.usefixtures("local_ray")


@ray.remote
def example_task(x):
    return x * x


@ray.remote
class ChildActor:
    def do_work(self):
        return "Work done by child"


@ray.remote
class ParentActor:
    def create_child(self):
        self.child_actor = ChildActor.remote()

    def get_work(self):
        return ray.get(self.child_actor.do_work.remote())


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

    def get_value(self):
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


def test_ten_tasks_return_squares():
    results = ray.get([example_task.remote(i) for i in range(10)])
    assert results == [0, 1, 4, 9, 16, 25, 36, 49, 64, 81]


def test_an_actor_creates_and_calls_another_one():
    parent_actor = ParentActor.remote()
    assert ray.get(parent_actor.create_child.remote()) is None
    assert ray.get(parent_actor.get_work.remote()) == "Work done by child"


def test_an_accumulator_has_its_value():
    accumulator = Accumulator.remote()
    assert ray.get(accumulator.get_value.remote()) == 0
    accumulator.add.remote(10)
    assert ray.get(accumulator.get_value.remote()) == 10


def test_two_ranks():
    with RayResourcePool([2], use_gpu=True) as pool:
        group = RayWorkerGroup(pool, RayClassWithInitArgs(cls=GPUAccumulator))
        assert len(group.workers) == 2
        assert group.execute_all_sync("add", x=[1, 3]) == [1, 4]
        assert group.execute_all_sync("get_value") == [1, 4]
        assert group.world_size == 2

        decorated = RayWorkerGroup(pool, RayClassWithInitArgs(cls=GPUAccumulatorDecorator))
        assert decorated.add(10) == [10, 11]
