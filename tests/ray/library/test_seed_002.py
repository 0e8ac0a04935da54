"""The programs of seed 002 on CPUs: gloo for nccl, smaller tensors."""

from __future__ import annotations

import os

import pytest
import ray
import torch

from workergroups import DataProto
from workergroups.single_controller.base import Worker
from workergroups.single_controller.base.decorator import Dispatch, register
from workergroups.single_controller.ray.base import (
    RayClassWithInitArgs,
    RayResourcePool,
    RayWorkerGroup,
    create_colocated_worker_cls,
    split_resource_pool,
)

pytestmark = pytest.mark.usefixtures("local_ray")


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
    """No Worker: it reads its rank from the environment, and meets the others in its constructor."""

    def __init__(self, model_cls) -> None:
        torch.manual_seed(42)
        if not torch.distributed.is_initialized():
            torch.distributed.init_process_group(
                backend="gloo",
                world_size=int(os.getenv("WORLD_SIZE", "1")),
                rank=int(os.getenv("RANK", "0")),
                init_method=f"tcp://{os.getenv('MASTER_ADDR')}:{os.getenv('MASTER_PORT')}",
            )
        self.model = torch.nn.parallel.DistributedDataParallel(model_cls())

    def train_step(self, data):
        loss = self.model(data).sum()
        loss.backward()
        return loss.detach()

    def sample_grads(self):
        return next((name, p.grad) for name, p in self.model.named_parameters() if p.requires_grad)


@ray.remote
class Actor(Worker):
    @register(dispatch_mode=Dispatch.DP_COMPUTE_PROTO)
    def add(self, data: DataProto):
        data.batch["a"] += self.rank
        return data


@ray.remote
class Critic(Worker):
    def __init__(self, config) -> None:
        super().__init__()
        self.config = config

    @register(dispatch_mode=Dispatch.DP_COMPUTE_PROTO)
    def sub(self, data: DataProto):
        data.batch["a"] -= self.config["b"]
        return data


def test_two_models_train_on_disjoint_bundles_of_one_placement_group():
    env = {"OMP_NUM_THREADS": "1"}
    with RayResourcePool([4], max_colocate_count=1) as pool:
        pool_a, pool_b = split_resource_pool(pool, 2)
        assert len(pool.get_placement_groups()) == 1
        group_a = RayWorkerGroup(pool_a, RayClassWithInitArgs(WorkerBase, model_cls=DummyAttn), worker_env=env)
        group_b = RayWorkerGroup(pool_b, RayClassWithInitArgs(WorkerBase, NewDummyModel), worker_env=env)
        for group, data in ((group_a, torch.randn(4, 3, 16)), (group_b, torch.randn(4, 8))):
            losses = group.execute_all_sync("train_step", list(data.chunk(2)))
            assert len(losses) == 2
            (name, first), (_, second) = group.execute_all_sync("sample_grads")
            assert name.endswith("weight")
            assert torch.allclose(first, second)
            assert first.abs().sum() > 0


def test_colocated_actor_and_critic():
    data = DataProto.from_dict({"a": torch.zeros(10)})
    cls_dict = {
        "actor": RayClassWithInitArgs(cls=Actor),
        "critic": RayClassWithInitArgs(cls=Critic, config={"b": 10}),
    }
    with (
        RayResourcePool(process_on_nodes=[2]) as resource_pool,
        RayWorkerGroup(resource_pool=resource_pool, ray_cls_with_init=create_colocated_worker_cls(cls_dict)) as wg_dict,
    ):
        spawn_wg = wg_dict.spawn(prefix_set=cls_dict.keys())
        actor_output = spawn_wg["actor"].add(data)
        critic_output = spawn_wg["critic"].sub(data)
        assert actor_output.batch["a"].tolist() == [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]
        assert critic_output.batch["a"].tolist() == [-10] * 10
