"""verl's own resource pools, worker groups and check of resources, on a ResourcePool that reserves bundles or not."""

import sys
from itertools import groupby

import ray
import torch
from verl import DataProto
from verl.single_controller.base import Worker
from verl.single_controller.base.decorator import Dispatch, register
from verl.single_controller.ray import RayClassWithInitArgs, RayWorkerGroup
from verl.single_controller.ray.base import ResourcePoolManager

# `check.py 2 2` is for a pool of two nodes with two processes each.
PROCESSES_ON_NODES = [int(count) for count in sys.argv[1:]] or [4]


@ray.remote
class Actor(Worker):
    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def address(self):
        return ray.util.get_node_ip_address()

    @register(dispatch_mode=Dispatch.DP_COMPUTE_PROTO)
    def add_rank(self, data: DataProto):
        data.batch["a"] += self.rank
        return data


def main() -> None:
    ray.init(address="auto")
    manager = ResourcePoolManager({"global_pool": PROCESSES_ON_NODES}, mapping={"actor": "global_pool"})
    manager.create_resource_pool()
    group = RayWorkerGroup(manager.get_resource_pool("actor"), RayClassWithInitArgs(cls=Actor))
    added = group.add_rank(DataProto.from_dict({"a": torch.zeros(8)}))
    nodes = {address: len(list(ranks)) for address, ranks in groupby(group.address())}
    print("ranks of each node, by its address:", nodes)
    print(group.world_size, "ranks have added their numbers:", added.batch["a"].tolist())


if __name__ == "__main__":
    main()
