"""Seed 000's program on CUDA, with two pools of `N` GPUs each, half of all, for which nothing is reserved."""

import re
import sys

import ray
import torch

from workergroups.single_controller.base import Worker
from workergroups.single_controller.base.decorator import Dispatch, Execute, collect_all_to_all, register
from workergroups.single_controller.ray.base import (
    RayClassWithInitArgs,
    RayResourcePool,
    RayWorkerGroup,
    merge_resource_pool,
)

N = int(sys.argv[1])
ray.init(address="auto", log_to_driver=False)


@ray.remote
class GPUAccumulator(Worker):
    """Each rank starts with its number, on its device."""

    def __init__(self) -> None:
        super().__init__()
        self.value = torch.zeros(size=(1,), device="cuda") + self.rank

    def add(self, x):
        """Add a number."""
        self.value += x
        assert str(self.value.device) == "cuda:0"
        return self.value.cpu()


@ray.remote
class GPUAccumulatorDecorator(Worker):
    """The same, with a method that is registered."""

    def __init__(self) -> None:
        super().__init__()
        self.value = torch.zeros(size=(1,), device="cuda") + self.rank

    @register(Dispatch.ONE_TO_ALL)
    def add(self, x):
        """Add a number."""
        self.value = self.value + x
        return self.value.cpu()


def two_to_all_dispatch_fn(worker_group, *args, **kwargs):
    """Give two values to all ranks in turn."""
    for values in (*args, *kwargs.values()):
        assert len(values) == 2
        for i in range(worker_group.world_size - 2):
            values.append(values[i % 2])
    return args, kwargs


@ray.remote
class TwoToAll(Worker):
    """A class with its own dispatch."""

    def __init__(self, x) -> None:
        super().__init__()
        self._x = x

    @register(dispatch_mode=Dispatch.ALL_TO_ALL, execute_mode=Execute.RANK_ZERO)
    def foo_rank_zero(self, x, y):
        """Run on one rank."""
        return self._x + y + x

    @register(dispatch_mode={"dispatch_fn": two_to_all_dispatch_fn, "collect_fn": collect_all_to_all})
    def foo_custom(self, x, y):
        """Run on all."""
        return self._x + y + x


def numbers(tensors):
    """Return the numbers in tensors of one element."""
    return [tensor.item() for tensor in tensors]


resource_pool = RayResourcePool([N], use_gpu=True)
class_with_args = RayClassWithInitArgs(cls=GPUAccumulator)
worker_group = RayWorkerGroup(resource_pool, class_with_args)
assert numbers(worker_group.execute_all_sync("add", x=[1] * N)) == [1 + i for i in range(N)]
assert resource_pool.local_rank_list() == list(range(N))
assert resource_pool.local_world_size_list() == [N] * N
assert re.fullmatch(r"\w{6}GPUAccumulator_0:0", worker_group.worker_names[0])

resource_pool_new = RayResourcePool([N], use_gpu=True, name_prefix="a")
resource_pool_merge = merge_resource_pool(resource_pool, resource_pool_new)
assert resource_pool_merge.local_rank_list() == [*range(N), *range(N)]
worker_group_new = RayWorkerGroup(resource_pool_new, class_with_args)
worker_group_merge = RayWorkerGroup(resource_pool_merge, class_with_args)
assert numbers(worker_group_new.execute_all_sync("add", x=[2] * N)) == [2 + i for i in range(N)]
assert numbers(worker_group_merge.execute_all_sync("add", x=[3] * 2 * N)) == [3 + i for i in range(2 * N)]

decorated = RayWorkerGroup(resource_pool_merge, RayClassWithInitArgs(cls=GPUAccumulatorDecorator))
assert numbers(decorated.add(x=10)) == [10 + i for i in range(2 * N)]
two = RayWorkerGroup(resource_pool_merge, RayClassWithInitArgs(cls=TwoToAll, x=2))
assert two.foo_custom(x=[1, 2], y=[5, 6]) == [8, 10] * N
assert two.foo_rank_zero(x=1, y=2) == 5
nodes = {placed["NodeID"] for placed in ray.nodes() if placed["Alive"] and placed["Resources"].get("GPU")}
print(f"seed 000 on {2 * N} GPUs of {len(nodes)} nodes: four groups on the same GPUs")
