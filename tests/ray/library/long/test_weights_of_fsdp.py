"""Weights of FSDP2's own modules, also with replicas and tensor parallelism, with rows that do not divide."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from workergroups import (
    Dispatch,
    RayClassWithInitArgs,
    RayResourcePool,
    RayWorkerGroup,
    Weights,
    Worker,
    check_weights,
    init_process_group,
    register,
)

pytestmark = pytest.mark.usefixtures("local_ray")


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(10, 14), nn.Linear(14, 7))


def sharded(kind):
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    if kind == "shards":
        return fully_shard(model(), mesh=init_device_mesh("cpu", (4,)))
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("outer", "inner"))
    if kind == "replicas of shards":
        return fully_shard(model(), mesh=mesh)
    split = parallelize_module(model(), mesh["inner"], {"0": ColwiseParallel(), "1": RowwiseParallel()})
    return fully_shard(split, mesh=mesh["outer"])


class Rank(Worker):
    def __init__(self) -> None:
        super().__init__()
        init_process_group()

    @register(Dispatch.ONE_TO_ALL)
    def publish(self, kind):
        self.weights, self.parameters = Weights(), sharded(kind).state_dict()
        return self.weights.publish(self.parameters)

    @register(Dispatch.ONE_TO_ALL)
    def receive(self, published):
        for parameter in self.parameters.values():
            parameter.to_local().zero_()
        received = Weights()  # which knows nothing of what has arrived before
        received.receive(published, self.parameters)
        expected = model().state_dict()
        assert all(torch.equal(each.full_tensor(), expected[name]) for name, each in self.parameters.items())
        return received.passport


@pytest.fixture(scope="module")
def groups(local_ray):
    with (
        RayResourcePool([4], use_gpu=False, max_colocate_count=2) as pool,
        RayWorkerGroup(pool, RayClassWithInitArgs(Rank), name_prefix="one") as one,
        RayWorkerGroup(pool, RayClassWithInitArgs(Rank), name_prefix="two") as two,
    ):
        yield one, two


KINDS = ["shards", "replicas of shards", "shards of tensor parallel parts"]


@pytest.mark.parametrize("to", KINDS)
@pytest.mark.parametrize("of", KINDS)
def test_each_way_to_shard_gets_the_weights_of_each_other(groups, of, to):
    one, two = groups
    published = one.publish(of)
    whole = {name: torch.zeros_like(each) for name, each in model().state_dict().items()}
    Weights().receive(published, whole)
    assert all(torch.equal(whole[name], each) for name, each in model().state_dict().items())
    two.publish(to)
    check_weights([*(each.passport for each in published), *two.receive(published)])
