"""Seed 001's program on CUDA: a group of two ranks."""

import ray
import torch

from workergroups.single_controller.base import Worker
from workergroups.single_controller.base.decorator import Dispatch, register
from workergroups.single_controller.ray.base import RayClassWithInitArgs, RayResourcePool, RayWorkerGroup

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
        return self.value.cpu()

    def get_value(self):
        """Return it."""
        return self.value.cpu()

    @register(Dispatch.ONE_TO_ALL)
    def add_to_all(self, x):
        """Add a number on each rank."""
        return self.add(x)


# Of one process on each of two nodes, or of two on one: whichever has the GPUs.
nodes = [node["Resources"]["GPU"] for node in ray.nodes() if node["Alive"] and node["Resources"].get("GPU")]
pool = RayResourcePool([2] if max(nodes) >= 2 else [1, 1], use_gpu=True)
group = RayWorkerGroup(pool, RayClassWithInitArgs(cls=GPUAccumulator))
assert len(group.workers) == group.world_size == 2
assert [value.item() for value in group.execute_all_sync("add", x=[1, 3])] == [1, 4]
assert [value.item() for value in group.execute_all_sync("get_value")] == [1, 4]
assert [value.item() for value in group.add_to_all(10)] == [11, 14]
print(f"seed 001 on two GPUs of {len(nodes)} nodes")
