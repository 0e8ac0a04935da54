"""Weights from device to device: the reader sees its own device only, and nothing of a rank that ended stays on any."""

from __future__ import annotations

import os
import sys
import time

import pytest
import ray
import torch

from workergroups import (
    Dispatch,
    RayClassWithInitArgs,
    RayResourcePool,
    RayWorkerGroup,
    Weights,
    WeightsError,
    Worker,
    check_weights,
    register,
)

GIB = 2**30


class Rank(Worker):
    """Has a whole model, or the rows of it that are its part, on its own device."""

    def __init__(self, way="any", sharded=False) -> None:
        super().__init__()
        from workergroups import WeightShard
        from workergroups.transfers import transports

        if way == "CUDA IPC":
            sys.modules["nixl"] = None
        if way == "NIXL":
            transports._ipc = lambda tensors: None
        torch.manual_seed(0)
        matrix, bias = torch.randn(1024, 1024, device="cuda"), torch.randn(1000, device="cuda")
        if sharded:
            height = len(matrix) // self.world_size
            rows = matrix[self.rank * height : (self.rank + 1) * height].clone()
            matrix = WeightShard(rows, matrix.shape, (self.rank * height, 0))
        self.tensors = {"matrix": matrix, "bias": bias}
        self.weights = Weights()
        self.rest = None

    @register(Dispatch.ONE_TO_ALL)
    def fill(self, gib):
        self.rest = torch.empty(gib * GIB, dtype=torch.uint8, device="cuda")
        self.tensors["rest"] = self.rest

    @register(Dispatch.ONE_TO_ALL)
    def devices(self):
        return os.environ["CUDA_VISIBLE_DEVICES"]

    @register(Dispatch.ONE_TO_ALL)
    def publish(self):
        return self.weights.publish(self.tensors)

    @register(Dispatch.ONE_TO_ALL)
    def step(self):
        """What has not changed is not read again."""
        for value in self.tensors.values():
            getattr(value, "tensor", value).neg_()

    @register(Dispatch.ONE_TO_ALL)
    def clear(self):
        for tensor in self.tensors.values():
            tensor.zero_()

    @register(Dispatch.ONE_TO_ALL)
    def receive(self, published):
        return self.weights.receive(published, self.tensors, timeout=30)

    @register(Dispatch.ONE_TO_ALL)
    def free(self):
        torch.cuda.synchronize()
        return torch.cuda.mem_get_info()[0]


@pytest.fixture(scope="module")
def pool():
    devices = torch.cuda.device_count()
    ray.init(address="local", num_gpus=devices, num_cpus=16, include_dashboard=False, log_to_driver=False)
    with RayResourcePool([devices], max_colocate_count=3) as pool:
        yield pool
    ray.shutdown()


def until(holds, seconds=20):
    """A process that Ray has ended is not gone from the device at once."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def group(pool, name, *arguments):
    return RayWorkerGroup(pool, RayClassWithInitArgs(Rank, *arguments), name_prefix=name)


@pytest.fixture(scope="module")
def rollout(pool):
    with group(pool, "rollout") as ranks:
        yield ranks


@pytest.mark.parametrize("way", ["CUDA IPC", "NIXL"])
def test_each_rank_reads_from_devices_that_it_does_not_see(pool, rollout, way):
    devices = [str(at) for at in range(torch.cuda.device_count())]
    with group(pool, way, way, True) as trainer:
        assert trainer.devices() == rollout.devices() == devices
        for _ in range(3):
            rollout.clear()
            published = trainer.publish()
            passports = rollout.receive(published)
            check_weights([*passports, *(each.passport for each in published)])
        assert len({passport.digest for passport in passports}) == 1


def test_a_thousand_hand_overs_leave_nothing_on_the_devices(pool, rollout):
    with group(pool, "trainer", "any", True) as trainer:
        rollout.receive(trainer.publish())
        before = rollout.free()
        for _ in range(1000):
            trainer.step()
            rollout.receive(trainer.publish())
        assert [had - has for had, has in zip(before, rollout.free(), strict=True)] == [0] * len(before)


def test_the_memory_of_a_rank_that_was_read_is_free_when_it_has_ended(pool, rollout):
    before = rollout.free()
    with group(pool, "large") as trainer:
        trainer.fill(8)
        published = trainer.publish()
        rollout.clear()
        rollout.receive(published)
        assert min(had - has for had, has in zip(before, rollout.free(), strict=True)) > 8 * GIB
    until(lambda: max(had - has for had, has in zip(before, rollout.free(), strict=True)) < GIB)
    rollout.clear()
    with pytest.raises(WeightsError, match=r"cannot be read from rank \d of large"):
        rollout.receive(published)


def test_memory_that_cannot_be_mapped_is_read_in_another_way(pool, rollout):
    with RayWorkerGroup(
        pool,
        RayClassWithInitArgs(Rank),
        name_prefix="expandable",
        worker_env={"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
    ) as trainer:
        published = trainer.publish()
        assert all(each.address.ipc is None for each in published)
        rollout.clear()
        rollout.receive(published)
