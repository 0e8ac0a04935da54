"""Batches on GPUs: they go from device to device as they are, and nothing of them stays on any."""

from __future__ import annotations

import os
import time

import pytest
import ray
import torch

from workergroups import DataProto, Dispatch, RayClassWithInitArgs, RayResourcePool, RayWorkerGroup, Worker, register

MIB = 2**20
ROWS = 12


class Rank(Worker):
    """Computes on its device; ranks of several groups share one."""

    def __init__(self, way="CUDA IPC", shift=0) -> None:
        super().__init__()
        from workergroups.protocol import on_device
        from workergroups.transfers import transports

        if way == "TCP":
            transports._ipc = lambda tensors: None
        torch.cuda.set_device((self.rank + shift) % torch.cuda.device_count())
        self.on_device = on_device
        self.returned = None

    @register(Dispatch.DP_COMPUTE_PROTO)
    def make(self, ask):
        rows, start = len(ask), int(ask.non_tensor_batch["row"][0])
        numbers = torch.arange(start * MIB, (start + rows) * MIB, device="cuda").view(rows, MIB)
        self.returned = DataProto.from_dict({"x": numbers, "half": numbers.bfloat16(), "host": numbers[:, :3].cpu()})
        return self.returned

    @register(Dispatch.DP_COMPUTE_PROTO)
    def add_one(self, batch):
        assert batch.batch["x"].is_cuda
        assert not batch.batch["host"].is_cuda
        batch.batch["x"] += 1
        return batch

    @register(Dispatch.ONE_TO_ALL)
    def spoil(self):
        self.returned.batch["x"].zero_()

    @register(Dispatch.DP_COMPUTE_METRIC)
    def total(self, batch):
        return int(batch.batch["x"].sum())

    @register(Dispatch.DP_COMPUTE_METRIC)
    @torch.inference_mode()
    def total_in_inference_mode(self, batch):
        return int(batch.batch["x"].sum())

    @register(Dispatch.ONE_TO_ALL)
    def fill(self):
        """Take all of the device's memory but little, and return how much is free."""
        self.returned = None
        torch.cuda.empty_cache()
        free, _ = torch.cuda.mem_get_info()
        self.filling = torch.empty(free - 200 * MIB, dtype=torch.uint8, device="cuda")
        return torch.cuda.mem_get_info()[0]

    @register(Dispatch.ONE_TO_ALL)
    def used(self):
        self.returned = None
        torch.cuda.synchronize()
        return torch.cuda.memory_allocated(), len(self.on_device._LEASES)

    @register(Dispatch.ONE_TO_ALL)
    def free(self):
        torch.cuda.empty_cache()
        return torch.cuda.mem_get_info()[0]


def ask(rows=ROWS):
    return DataProto.from_dict(non_tensors={"row": list(range(rows))})


def expected(rows=ROWS):
    return torch.arange(rows * MIB).view(rows, MIB)


@pytest.fixture(scope="module", autouse=True)
def local_ray():
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"  # all ranks see all devices, so that one is enough
    ray.init(address="local", num_cpus=32, include_dashboard=False)
    yield
    ray.shutdown()


def until(holds):
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def group(ranks, name, *args):
    pool = RayResourcePool([ranks], use_gpu=False, max_colocate_count=1)
    return RayWorkerGroup(pool, RayClassWithInitArgs(Rank, *args), name_prefix=name)


@pytest.fixture(scope="module", params=["CUDA IPC", "TCP"])
def actor(local_ray, request):
    with group(2, "actor", request.param) as ranks:
        yield ranks


@pytest.fixture(scope="module")
def critic(local_ray):
    with group(3, "critic", "CUDA IPC", 1) as ranks:
        yield ranks


def test_batches_go_from_device_to_device_and_to_the_driver(actor, critic):
    made = actor.make(ask())
    actor.spoil()
    added = critic.add_one(made)
    assert made._store.is_packed
    assert len(made._store.keepers) == 2
    again = actor.add_one(added)
    assert torch.equal(again.batch["x"].cpu(), expected() + 2)
    assert torch.equal(again.batch["half"].cpu(), expected().bfloat16())
    assert torch.equal(made.batch["x"].cpu(), expected())
    assert made.batch["host"].device.type == "cpu"


def test_ranks_in_inference_mode_get_batches(actor, critic):
    assert sum(critic.total_in_inference_mode(actor.make(ask()))) == int(expected().sum())


def test_a_thousand_hand_overs_leave_no_byte(actor, critic):
    def once():
        return critic.total(actor.make(ask()))

    def used():
        """What is referred to no more is freed a moment later."""
        until(lambda: not any(leases for ranks in (actor, critic) for _, leases in ranks.used()))
        return [ranks.used() for ranks in (actor, critic)]

    totals = once()
    assert sum(totals) == int(expected().sum())
    before = used(), [ranks.free() for ranks in (actor, critic)]
    for _ in range(1000):
        assert once() == totals
    after = used(), [ranks.free() for ranks in (actor, critic)]
    assert after[0] == before[0]
    # The driver's own tables for mapped memory may have grown once.
    assert min(map(min, before[1])) - min(map(min, after[1])) < 64 * MIB


def test_a_rank_that_is_killed_leaves_nothing_on_the_device_of_its_readers(critic):
    before = min(critic.free())
    for at in range(2):
        with group(2, f"killed{at}") as ranks:
            critic.total(ranks.make(ask()))
            for worker in ranks.workers:
                ray.kill(worker)
    until(lambda: before - min(critic.free()) < 64 * MIB)


def test_batches_go_through_host_memory_while_the_device_is_full():
    with group(1, "full") as ranks:
        assert ranks.make(ask())._store.keepers
        assert ranks.fill()[0] < 300 * MIB
        made = ranks.make(ask())
        assert not made._store.keepers
    assert torch.equal(made.batch["x"].cpu(), expected())
