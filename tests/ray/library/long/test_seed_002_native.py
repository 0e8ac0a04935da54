"""The program of seed 002 that is written for any Ray cluster, with no word of ours; gloo for nccl, smaller tensors."""

from __future__ import annotations

import os
import socket

import pytest
import ray
import torch
import torch.distributed as dist
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

pytestmark = pytest.mark.usefixtures("local_ray")

DEVICES_PER_GROUP = 2


class DummyAttn(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.proj = torch.nn.Linear(16, 4)

    def forward(self, x):
        return self.proj(x)


class NewDummyModel(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))

    def forward(self, x):
        return self.net(x)


class WorkerBase:
    def __init__(self, model_cls, temp_init: bool = False) -> None:
        self._ip_address = socket.gethostbyname(socket.gethostname())
        if temp_init:
            return
        torch.manual_seed(42)
        if not dist.is_initialized():
            dist.init_process_group(
                backend="gloo",
                world_size=int(os.getenv("WORLD_SIZE", "1")),
                rank=int(os.getenv("RANK", "0")),
                init_method=f"tcp://{os.getenv('MASTER_ADDR')}:{os.getenv('MASTER_PORT')}",
            )
        self.model = torch.nn.parallel.DistributedDataParallel(model_cls())

    def get_actor_info(self):
        return {"ip_address": self._ip_address}

    def train_step(self, data):
        loss = self.model(data).sum()
        loss.backward()
        return loss.detach()

    def sample_grads(self):
        return next((name, p.grad) for name, p in self.model.named_parameters() if p.requires_grad)


def find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def setup_and_create_workers(pg, model_cls, group_name, start_bundle_index, num_workers_in_group):
    Worker = ray.remote(WorkerBase)
    temp_worker = Worker.options(
        scheduling_strategy=PlacementGroupSchedulingStrategy(
            placement_group=pg,
            placement_group_bundle_index=start_bundle_index,
        ),
        num_gpus=1,
    ).remote(model_cls=model_cls, temp_init=True)
    master_addr = ray.get(temp_worker.get_actor_info.remote())["ip_address"]
    master_port = str(find_free_port())
    ray.kill(temp_worker)
    workers = []
    for rank in range(num_workers_in_group):
        env_vars = {
            "WORLD_SIZE": str(num_workers_in_group),
            "RANK": str(rank),
            "MASTER_ADDR": master_addr,
            "MASTER_PORT": master_port,
            "GROUP_NAME": group_name,
            "OMP_NUM_THREADS": "1",
        }
        workers.append(
            Worker.options(
                name=f"{group_name}_rank_{rank}",
                scheduling_strategy=PlacementGroupSchedulingStrategy(
                    placement_group=pg,
                    placement_group_bundle_index=start_bundle_index + rank,
                ),
                runtime_env={"env_vars": env_vars},
                num_gpus=1,
            ).remote(model_cls=model_cls)
        )
    return workers


def test_two_groups_on_the_bundles_of_a_native_placement_group_agree_on_their_gradients():
    pg = placement_group([{"CPU": 1, "GPU": 1} for _ in range(4)], strategy="STRICT_PACK", name="ray_multi_group_comm")
    ray.get(pg.ready(), timeout=60)
    for start, model_cls, data in ((0, DummyAttn, torch.randn(4, 3, 16)), (2, NewDummyModel, torch.randn(4, 8))):
        workers = setup_and_create_workers(pg, model_cls, f"Group_{model_cls.__name__}", start, DEVICES_PER_GROUP)
        parts = data.chunk(DEVICES_PER_GROUP)
        ray.get([worker.train_step.remote(part) for worker, part in zip(workers, parts, strict=True)], timeout=120)
        (_, first), (_, second) = ray.get([worker.sample_grads.remote() for worker in workers], timeout=60)
        assert torch.allclose(first, second)
        assert first.abs().sum() > 0
    remove_placement_group(pg)
