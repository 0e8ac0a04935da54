"""Batches stay where ranks computed them until somebody uses them, and nothing of them stays afterwards.

The ranks treat host memory as a device.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import time

import pytest
import ray
import torch

from workergroups import (
    BatchLostError,
    DataProto,
    Dispatch,
    RayClassWithInitArgs,
    RayResourcePool,
    RayWorkerGroup,
    Worker,
    register,
)

pytestmark = pytest.mark.usefixtures("local_ray")
ROWS = 12


class Model(Worker):
    """Returns batches that stay with it."""

    def __init__(self) -> None:
        super().__init__()
        from workergroups.protocol import on_device

        on_device.is_kept = lambda tensor: tensor.layout == torch.strided
        on_device._SMALLEST = 1
        self.on_device = on_device
        self.seen = None

    @register(Dispatch.DP_COMPUTE_PROTO)
    def double(self, batch):
        return DataProto.from_dict({"x": 2 * batch.batch["x"], "of_rank": torch.full((len(batch),), self.rank)})

    @register(Dispatch.DP_COMPUTE_PROTO, blocking=False)
    def double_later(self, batch):
        return self.double(batch)

    @register(Dispatch.DP_COMPUTE_PROTO, blocking=False)
    def sleep(self, batch):
        time.sleep(5)
        return batch

    @register(Dispatch.DP_COMPUTE_METRIC)
    def total(self, batch):
        return float(batch.batch["x"].sum())

    @register(Dispatch.DP_COMPUTE_METRIC)
    def remember(self, batch):
        self.seen = batch

    @register(Dispatch.ONE_TO_ALL)
    def kept(self):
        return len(self.on_device._LEASES)

    def pid(self):
        return os.getpid()


def numbers():
    return DataProto.from_dict({"x": torch.arange(ROWS * 4).view(ROWS, 4)})


def keeps_nothing(*groups, within=2.0):
    for group in groups:
        group.kept()  # which waits for the calls before it
    deadline = time.monotonic() + within
    while any(sum(group.kept()) for group in groups):
        assert time.monotonic() < deadline, [group.kept() for group in groups]
        gc.collect()  # an exception's frames refer to results
        time.sleep(0.05)
    return True


@pytest.fixture(scope="module")
def actor(pool):
    with RayWorkerGroup(pool, RayClassWithInitArgs(Model), name_prefix="actor") as group:
        yield group


@pytest.fixture(scope="module")
def critic(pool):
    """A group of another size than the actor's."""
    with (
        RayResourcePool([3], use_gpu=False, max_colocate_count=1) as three,
        RayWorkerGroup(three, RayClassWithInitArgs(Model), name_prefix="critic") as group,
    ):
        yield group


def test_a_batch_goes_from_group_to_group_and_the_driver_reads_none_of_it(actor, critic):
    doubled = actor.double(numbers())
    assert doubled._store.keepers == set(actor._ranks.actor_ids)
    twice = critic.double(doubled)
    assert doubled._store.is_packed
    back = actor.double(twice.select(["x"]))
    assert torch.equal(back.batch["x"], 8 * numbers().batch["x"])
    assert twice.batch["of_rank"].tolist() == [rank for rank in range(3) for _ in range(ROWS // 3)]
    del doubled, twice, back
    assert keeps_nothing(actor, critic)


def test_a_batch_that_does_not_divide_is_padded_by_its_references(actor, critic):
    data = DataProto.from_dict({"x": torch.arange(8).view(8, 1)}, auto_padding=True)
    doubled = actor.double(data)
    doubled.meta_info.update(data.meta_info)
    assert torch.equal(critic.double(doubled).batch["x"], 4 * data.batch["x"])
    assert doubled._store.is_packed


def test_futures_are_handed_over_while_they_are_computed(actor, critic):
    future = critic.double_later(actor.double_later(numbers()))
    assert actor.total(future) == [4.0 * part for part in (276, 852)]
    assert torch.equal(future.get().batch["x"], 4 * numbers().batch["x"])
    del future
    assert keeps_nothing(actor, critic)


def test_a_busy_rank_is_read_by_the_driver(actor):
    doubled = actor.double(numbers())
    busy = actor.sleep(numbers())
    began = time.monotonic()
    assert torch.equal(doubled.batch["x"], 2 * numbers().batch["x"])
    assert time.monotonic() - began < 4
    busy.get()


def test_a_rank_keeps_a_batch_for_as_long_as_a_process_may_read_it(actor, pool):
    with RayWorkerGroup(pool, RayClassWithInitArgs(Model), name_prefix="holder") as holder:
        holder.remember(actor.double(numbers()))
        time.sleep(0.5)
        assert actor.kept() == [1, 1]
        for worker in holder.workers:
            ray.kill(worker)
        assert keeps_nothing(actor, within=20)


def test_what_nobody_fetches_is_freed(actor):
    for _ in range(100):
        actor.double_later(numbers())
    assert keeps_nothing(actor)


def test_the_driver_has_a_batch_when_its_group_is_closed(pool):
    with RayWorkerGroup(pool, RayClassWithInitArgs(Model), name_prefix="closed") as group:
        doubled = group.double(numbers())
        half = doubled.slice(0, 6)
        saved = pickle.dumps(group.double(numbers()))
    for batch, expected in ((doubled, numbers()), (half, numbers()[:6]), (pickle.loads(saved), numbers())):
        assert torch.equal(batch.batch["x"], 2 * expected.batch["x"])


def test_a_batch_of_a_dead_rank_is_named_and_no_other_rank_ends(actor, pool):
    with RayWorkerGroup(pool, RayClassWithInitArgs(Model), name_prefix="lost") as group:
        doubled = group.double(numbers())
        os.kill(group.execute_all_sync("pid")[1], signal.SIGKILL)
        time.sleep(1)
        with pytest.raises(BatchLostError, match=r"the batch that 'double' returned .* from rank 1 of lost"):
            actor.double(doubled)
        with pytest.raises(BatchLostError, match=r"Call the method again"):
            doubled.batch  # noqa: B018
    assert actor.total(numbers()) == [276.0, 852.0]
    assert keeps_nothing(actor)


def test_a_frozen_rank_is_read_when_it_goes_on(actor, pool, monkeypatch):
    with RayWorkerGroup(pool, RayClassWithInitArgs(Model), name_prefix="frozen") as group:
        doubled = group.double(numbers())
        pid = group.execute_all_sync("pid")[0]
        os.kill(pid, signal.SIGSTOP)
        try:
            with monkeypatch.context() as patch:
                patch.setattr("workergroups.protocol.on_device.READ_SECONDS", 1.0)
                with pytest.raises(BatchLostError, match=r"rank 0 of frozen: TimeoutError: not all has arrived"):
                    doubled.batch  # noqa: B018
        finally:
            os.kill(pid, signal.SIGCONT)
        assert torch.equal(doubled.batch["x"], 2 * numbers().batch["x"])
