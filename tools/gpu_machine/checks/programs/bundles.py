"""Seed 000 on the reserved bundles of two pools, which a program attaches and merges."""

import torch

from workergroups import RayClassWithInitArgs, RayWorkerGroup, Worker, attach_pool, merge_resource_pool


class GPUAccumulator(Worker):
    """Each rank starts with its number, on its device."""

    def __init__(self) -> None:
        super().__init__()
        self.value = torch.zeros(size=(1,), device="cuda") + self.rank

    def add(self, x):
        """Add a number."""
        self.value += x
        return self.value.cpu()


green, red = attach_pool("green"), attach_pool("red")
merged = merge_resource_pool(green, red)
n = len(green.local_rank_list())
assert merged.local_rank_list() == [*range(n), *range(n)]
class_with_args = RayClassWithInitArgs(cls=GPUAccumulator)
with (
    RayWorkerGroup(green, class_with_args) as group,
    RayWorkerGroup(red, class_with_args) as group_new,
    RayWorkerGroup(merged, class_with_args) as group_merged,
):
    for ranks, x in ((group, 1), (group_new, 2), (group_merged, 3)):
        results = [tensor.item() for tensor in ranks.execute_all_sync("add", x=[x] * ranks.world_size)]
        assert results == [x + rank for rank in range(ranks.world_size)]
print(f"three groups on the bundles of two pools, {n} and {n}")
