"""Seed 002's programs on CUDA: torch.distributed over NCCL on Ray's own placement group, then colocated classes.

Each group has all GPUs, one after the other, since the seed has four.
"""

import os
import socket

import ray
import torch
import torch.distributed as dist
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from workergroups import DataProto
from workergroups.single_controller.base import Worker
from workergroups.single_controller.base.decorator import Dispatch, register
from workergroups.single_controller.ray.base import (
    RayClassWithInitArgs,
    RayResourcePool,
    RayWorkerGroup,
    create_colocated_worker_cls,
)


class DummyAttn(torch.nn.Module):
    """A model."""

    def __init__(self) -> None:
        super().__init__()
        self.attn = torch.nn.MultiheadAttention(1024, 8, batch_first=True)

    def forward(self, x):
        """Attend."""
        return self.attn(x, x, x)[0]


class NewDummyModel(torch.nn.Module):
    """Another model."""

    def __init__(self) -> None:
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 2))

    def forward(self, x):
        """Compute."""
        return self.net(x)


class WorkerBase:
    """No class of ours: it reads its rank from the environment."""

    def __init__(self, model_cls, temp_init: bool = False) -> None:
        self._ip_address = socket.gethostbyname(socket.gethostname())
        if temp_init:
            return
        torch.manual_seed(42)
        dist.init_process_group(
            backend="nccl",
            world_size=int(os.environ["WORLD_SIZE"]),
            rank=int(os.environ["RANK"]),
            init_method=f"tcp://{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}",
        )
        self.model = torch.nn.parallel.DistributedDataParallel(model_cls().to("cuda"))

    def get_actor_info(self):
        """Return where it runs."""
        return {"ip_address": self._ip_address}

    def train_step(self, data):
        """Compute gradients."""
        loss = self.model(data.to("cuda")).sum()
        loss.backward()
        return loss.detach().cpu()

    def sample_grads(self):
        """Return those of one parameter."""
        return next((name, p.grad.cpu()) for name, p in self.model.named_parameters() if p.requires_grad)


def start_workers(pg, model_cls, port):
    """Start one for each bundle; a temporary one says where they meet."""
    remote = ray.remote(WorkerBase)

    def on(bundle):
        return PlacementGroupSchedulingStrategy(placement_group=pg, placement_group_bundle_index=bundle)

    temp_worker = remote.options(scheduling_strategy=on(0), num_gpus=1).remote(model_cls, temp_init=True)
    address = ray.get(temp_worker.get_actor_info.remote())["ip_address"]
    ray.kill(temp_worker)
    workers = []
    for rank in range(pg.bundle_count):
        env_vars = {
            "WORLD_SIZE": str(pg.bundle_count),
            "RANK": str(rank),
            "MASTER_ADDR": address,
            "MASTER_PORT": str(port),
        }
        options = {"scheduling_strategy": on(rank), "runtime_env": {"env_vars": env_vars}, "num_gpus": 1}
        workers.append(remote.options(**options).remote(model_cls))
    return workers


ray.init(address="auto", log_to_driver=False)
nodes = [int(node["Resources"]["GPU"]) for node in ray.nodes() if node["Alive"] and node["Resources"].get("GPU")]
pg = placement_group([{"CPU": 1, "GPU": 1}] * sum(nodes), strategy="PACK", name="ray_multi_group_comm")
ray.get(pg.ready(), timeout=60)
for port, model_cls, data in (
    (20_001, DummyAttn, torch.randn(4, 128, 1024)),
    (20_002, NewDummyModel, torch.randn(4, 512)),
):
    workers = start_workers(pg, model_cls, port)
    parts = data.chunk(len(workers))
    ray.get([worker.train_step.remote(part) for worker, part in zip(workers, parts, strict=True)], timeout=120)
    (_, first), *others = ray.get([worker.sample_grads.remote() for worker in workers], timeout=60)
    assert first.abs().sum() > 0
    assert all(torch.allclose(first, other) for _, other in others)
    for worker in workers:
        ray.kill(worker)
remove_placement_group(pg)


@ray.remote
class Actor(Worker):
    """Adds its rank on its device."""

    @register(dispatch_mode=Dispatch.DP_COMPUTE_PROTO)
    def add(self, data: DataProto):
        """Add."""
        data.batch["a"] = data.batch["a"].to("cuda")
        data.batch["a"] += self.rank
        return data


@ray.remote
class Critic(Worker):
    """Subtracts a number on its device."""

    def __init__(self, config) -> None:
        super().__init__()
        self.config = config

    @register(dispatch_mode=Dispatch.DP_COMPUTE_PROTO)
    def sub(self, data: DataProto):
        """Subtract."""
        data.batch["a"] = data.batch["a"].to("cuda")
        data.batch["a"] -= self.config["b"]
        return data


cls_dict = {"actor": RayClassWithInitArgs(cls=Actor), "critic": RayClassWithInitArgs(cls=Critic, config={"b": 10})}
group = RayWorkerGroup(RayResourcePool(nodes, use_gpu=True), create_colocated_worker_cls(cls_dict))
spawned = group.spawn(prefix_set=cls_dict.keys())
data = DataProto.from_dict({"a": torch.zeros(10 * sum(nodes))})
added = spawned["actor"].add(data).batch["a"].cpu()
assert added.tolist() == [float(rank) for rank in range(sum(nodes)) for _ in range(10)]
assert spawned["critic"].sub(data).batch["a"].cpu().tolist() == [-10.0] * len(added)
print(f"seed 002 on {sum(nodes)} GPUs of {len(nodes)} nodes: equal gradients over NCCL, colocated classes")
