"""Weights between ranks: from the shards of DTensors to others, with and without NIXL, and after a rank's death."""

from __future__ import annotations

import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from torch import nn

from workergroups import (
    Dispatch,
    RayClassWithInitArgs,
    RayWorkerGroup,
    Weights,
    WeightsError,
    WeightShard,
    Worker,
    check_weights,
    init_process_group,
    register,
)

pytestmark = pytest.mark.usefixtures("local_ray")
ROWS, COLUMNS = 300, 64


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(COLUMNS, ROWS), nn.LayerNorm(ROWS))


class Trainer(Worker):
    """Has its parameters as FSDP shards them, without its slow import."""

    def __init__(self, with_nixl=True) -> None:
        super().__init__()
        if not with_nixl:
            sys.modules["nixl"] = None
        from torch.distributed.tensor import Shard, distribute_tensor, init_device_mesh

        init_process_group()
        mesh = init_device_mesh("cpu", (self.world_size,))
        self.parameters = {
            name: distribute_tensor(each, mesh, [Shard(0)]) for name, each in model().state_dict().items()
        }
        self.weights = Weights()

    def pid(self):
        return os.getpid()

    @register(Dispatch.ONE_TO_ALL)
    def step(self):
        with torch.no_grad():
            for parameter in self.parameters.values():
                parameter.add_(1)

    @register(Dispatch.ONE_TO_ALL)
    def publish(self):
        return self.weights.publish(self.parameters, dtype=torch.bfloat16)

    @register(Dispatch.ONE_TO_ALL)
    def passport(self):
        return self.weights.passport


class Rollout(Worker):
    """Is tensor parallel: has a block of columns of the large matrix."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = Weights()
        width = COLUMNS // self.world_size
        self.columns = slice(self.rank * width, (self.rank + 1) * width)
        self.tensors = {
            name: torch.zeros_like(each, dtype=torch.bfloat16) for name, each in model().state_dict().items()
        }
        self.tensors["0.weight"] = self.tensors["0.weight"][:, self.columns].clone()

    @register(Dispatch.ONE_TO_ALL)
    def load(self, published):
        matrix = WeightShard(self.tensors["0.weight"], (ROWS, COLUMNS), (0, self.columns.start))
        return self.weights.receive(published, {**self.tensors, "0.weight": matrix}, timeout=20)

    @register(Dispatch.ONE_TO_ALL)
    def is_right(self, steps):
        expected = {name: (each + steps).bfloat16() for name, each in model().state_dict().items()}
        expected["0.weight"] = expected["0.weight"][:, self.columns]
        return all(torch.equal(each, self.tensors[name]) for name, each in expected.items())

    @register(Dispatch.ONE_TO_ALL)
    def stream_is_right(self, published, steps):
        streamed = dict(self.weights.stream(published, device="cpu"))
        return all(
            torch.equal((each + steps).bfloat16(), streamed[name]) for name, each in model().state_dict().items()
        )


class SeveralModels(Worker):
    """Publishes other memory each time."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = [Weights(f"model{number}") for number in range(3)]

    @register(Dispatch.ONE_TO_ALL)
    def publish(self, value):
        return [each.publish({"w": torch.full((2**20,), value + at)}) for at, each in enumerate(self.weights)]


@pytest.fixture(scope="module")
def rollout(pool):
    with RayWorkerGroup(pool, RayClassWithInitArgs(Rollout), name_prefix="rollout") as group:
        yield group


@pytest.mark.parametrize("with_nixl", [True, False])
def test_shards_of_dtensors_go_to_the_shards_of_tensor_parallel_ranks_after_each_step(pool, rollout, with_nixl):
    trainer_class = RayClassWithInitArgs(Trainer, with_nixl)
    with RayWorkerGroup(pool, trainer_class, name_prefix="trainer") as trainer:
        for steps in range(3):
            published = trainer.publish()
            passports = rollout.load(published)
            assert rollout.is_right(steps) == [True, True]
            assert [each.version for each in passports] == [steps + 1] * 2
            check_weights(trainer.passport() + passports)
            trainer.step()
        assert rollout.stream_is_right(trainer.publish(), 3) == [True, True]
        # The driver, which is no rank, has no part in this, and can read them all the same.
        whole = torch.zeros(ROWS, dtype=torch.bfloat16)
        assert Weights().receive(trainer.publish(), {"1.weight": whole}).rank.startswith("process")
        assert torch.equal(whole, torch.full((ROWS,), 4, dtype=torch.bfloat16))


@pytest.mark.long
def test_a_rank_that_is_stopped_is_named_after_the_timeout_and_can_be_read_when_it_goes_on(pool, rollout):
    with RayWorkerGroup(pool, RayClassWithInitArgs(Trainer), name_prefix="stopped") as trainer:
        published = trainer.publish()
        pid = trainer.execute_all_sync("pid")[1]
        os.kill(pid, signal.SIGSTOP)
        try:
            whole = torch.zeros(ROWS, dtype=torch.bfloat16)
            with pytest.raises(WeightsError, match=r"cannot be read from rank 1 of stopped: TimeoutError: not all"):
                Weights().receive(published, {"1.weight": whole}, timeout=3)
        finally:
            os.kill(pid, signal.SIGCONT)
        Weights().receive(published, {"1.weight": whole}, timeout=20)
        assert torch.equal(whole, torch.ones(ROWS, dtype=torch.bfloat16))


def test_processes_that_are_forgotten_are_met_again(pool, monkeypatch):
    monkeypatch.setattr("workergroups.transfers.nixl_reads._MAX_PEERS", 1)
    with RayWorkerGroup(pool, RayClassWithInitArgs(Trainer), name_prefix="many") as trainer:
        published = trainer.publish()
        driver = Weights()
        for start in (0, ROWS // 2, 0, ROWS // 2):
            half = torch.zeros(ROWS // 2, dtype=torch.bfloat16)  # which one rank has
            driver.receive(published, {"1.weight": WeightShard(half, (ROWS,), (start,))})
            assert torch.equal(half, torch.ones(ROWS // 2, dtype=torch.bfloat16))


def test_several_models_are_read_at_once(pool):
    def read(at, published):
        into = {"w": torch.zeros(2**20, dtype=torch.int64)}
        Weights().receive([published[at]], into, timeout=20)
        return int(into["w"].min()), int(into["w"].max())

    group = RayWorkerGroup(pool, RayClassWithInitArgs(SeveralModels), name_prefix="several")
    with group as ranks, ThreadPoolExecutor(3) as threads:
        for value in range(20):
            published = ranks.publish(value)[0]
            found = threads.map(read, (2, 1, 0), [published] * 3)
            assert list(found) == [(value + at,) * 2 for at in (2, 1, 0)]


def test_what_a_dead_rank_published_is_refused_by_the_name_of_the_rank(pool, rollout):
    with RayWorkerGroup(pool, RayClassWithInitArgs(Trainer), name_prefix="lost") as trainer:
        published = trainer.publish()
        rollout.load(published)
        processes = [Path(f"/proc/{pid}") for pid in trainer.execute_all_sync("pid")]
    while any(process.exists() for process in processes):  # to Ray, they end a moment earlier
        time.sleep(0.05)
    with pytest.raises(WeightsError, match=r"cannot be read from rank \d of lost"):
        rollout.load(published)
    with pytest.raises(WeightsError, match=r"cannot be read from rank \d of lost"):
        Weights().receive(published, {"1.weight": torch.zeros(ROWS, dtype=torch.bfloat16)}, timeout=20)
