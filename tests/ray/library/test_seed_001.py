"""The program of seed 001 with plain numbers for CUDA tensors."""

from __future__ import annotations

import pytest
import ray

from workergroups.single_controller.base import Worker
from workergroups.single_controller.base.decorator import Dispatch, register
from workergroups.single_controller.ray.base import RayClassWithInitArgs, RayResourcePool, RayWorkerGroup

pytestmark = pytest.mark.usefixtures("local_ray")


@ray.remote
class Accumulator(Worker):
    def __init__(self) -> None:
        super().__init__()
        self.value = float(self.rank)

    def add(self, x):
        self.value += x
        return self.value

    def get_value(self):
        return self.value


@ray.remote
class AccumulatorDecorator(Worker):
    def __init__(self) -> None:
        super().__init__()
        self.value = float(self.rank)

    @register(Dispatch.ONE_TO_ALL)
    def add(self, x):
        self.value = self.value + x
        return self.value


def test_two_ranks():
    with RayResourcePool([2], use_gpu=True) as pool:
        group = RayWorkerGroup(pool, RayClassWithInitArgs(cls=Accumulator))
        assert len(group.workers) == 2
        assert group.execute_all_sync("add", x=[1, 3]) == [1, 4]
        assert group.world_size == 2

        decorated = RayWorkerGroup(pool, RayClassWithInitArgs(cls=AccumulatorDecorator))
        assert decorated.add(10) == [10, 11]
