"""Batches that stay on their rank's device: the same bits arrive as through host memory, whatever is done with them."""

from __future__ import annotations

import logging
import pickle
import sys
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from functools import partial, reduce
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from workergroups import BatchLostError, DataProto, Dispatch, RayResourcePool, RayWorkerGroup, register
from workergroups.protocol import on_device, packing
from workergroups.single_controller.ray import resource_pool, worker_group

from .test_data_proto import travel
from .test_layouts import DTYPES, KINDS, LENGTHS, WAYS, assert_same_columns, bits

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # torch's, of layouts that are not final


class Reference:
    """Stands for a reference to an object of Ray's."""

    def __init__(self):
        self.number = uuid.uuid4().bytes

    def binary(self):
        return self.number


@pytest.fixture(scope="module", autouse=True)
def rank():
    """This process is a rank whose devices hold all dense tensors; and others, which read it over TCP."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(on_device, "is_kept", lambda tensor: tensor.layout == torch.strided)
        patch.setattr(on_device, "_SMALLEST", 1)
        patch.setattr(on_device, "_actor_id", lambda: "actor")
        patch.setattr(on_device, "watches_references", lambda: True)
        patch.setattr(on_device, "when_unreferenced", lambda reference, callback: None)
        patch.setattr("ray.put", lambda value: Reference())
        patch.setattr(packing, "counts_references", lambda: True)
        patch.setattr("workergroups.transfers.transports._own", lambda address: None)
        patch.setattr("workergroups.transfers.transports._nixl", lambda: None)
        yield
    on_device._LEASES.clear()


def kept(data, method="step"):
    """What arrives elsewhere of a batch that a rank returned."""
    return travel(data.kept_on_device(method))


@settings(max_examples=60)
@given(kinds=KINDS, lengths=LENGTHS, ways=st.lists(st.sampled_from(WAYS), min_size=1, max_size=3))
def test_columns_of_any_layout_come_back_as_they_were(kinds, lengths, ways):
    columns = {kind.__name__: kind(len(lengths), dtype, lengths) for kind, dtype in kinds.items()}
    data = DataProto.from_dict(columns)
    assert_same_columns(reduce(lambda batch, way: way(batch), ways, kept(data)), data)


@settings(max_examples=60)
@given(
    dtypes=st.lists(st.sampled_from(DTYPES), min_size=1, max_size=4),
    of_rank=st.lists(st.sets(st.sampled_from(DTYPES)), min_size=1, max_size=4),
    receivers=st.integers(1, 4),
    rows=st.integers(1, 3),
)
def test_batches_go_from_any_number_of_ranks_to_any_other(dtypes, of_rank, receivers, rows):
    senders = len(of_rank)
    data = DataProto.from_dict({f"{at}": bits(rows * senders, 5, dtype=dtype) for at, dtype in enumerate(dtypes)})
    parts = []
    for part, on_its_device in zip(data.chunk(senders), of_rank, strict=True):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(on_device, "is_kept", lambda tensor, kinds=on_its_device: tensor.dtype in kinds)
            parts.append(kept(part))
    padding = -len(data) % receivers
    arrived = [travel(part) for part in travel(DataProto.concat(parts).padded(padding)).chunk(receivers)]
    for got, expected in zip(arrived, data.padded(padding).chunk(receivers), strict=True):
        assert_same_columns(got, expected)


def test_nothing_is_read_to_pass_a_batch_on(monkeypatch):
    data = DataProto.from_dict({"x": bits(6, 4), "y": bits(6, 2, dtype=torch.int2)})
    with monkeypatch.context() as patch:
        patch.setattr(on_device, "fetch", None)
        joined = DataProto.concat([kept(part) for part in data.chunk(3)])
        passed_on = [travel(part) for part in travel(joined).padded(2).chunk(4)]
        chosen = travel(joined.select(["y"]).union(joined.select(["x"])))
        assert [len(part) for part in passed_on] == [2, 2, 2, 2]
        assert joined.nbytes == data.nbytes
    assert_same_columns(DataProto.concat(passed_on)[:6], data)
    assert_same_columns(chosen.select(["x", "y"]), data)


def test_a_batch_is_what_it_was_when_the_method_returned():
    column = torch.ones(4, 2)
    arrived = kept(DataProto.from_dict({"x": column}))
    column.zero_()
    received = travel(arrived)
    received.batch["x"].add_(1)
    assert torch.equal(arrived.batch["x"], torch.ones(4, 2))


def test_what_is_pickled_for_others_than_ray_has_its_tensors(monkeypatch):
    arrived = kept(DataProto.from_dict({"x": torch.ones(4, 2)}))
    monkeypatch.setattr(packing, "counts_references", lambda: False)
    copied = travel(arrived)
    on_device._LEASES.clear()
    assert torch.equal(copied.batch["x"], torch.ones(4, 2))


def test_a_batch_whose_rank_has_it_no_more_is_named():
    data = DataProto.from_dict({"x": torch.ones(4, 2)})
    arrived, joined = kept(data), DataProto.concat([kept(data), kept(data, "make")])
    on_device._LEASES.clear()
    with pytest.raises(BatchLostError, match=r"batch that 'step' returned is on .* cannot be read from process \d+"):
        arrived.batch  # noqa: B018
    with pytest.raises(BatchLostError, match=r"batch that 'make' or 'step' returned"):
        joined.batch  # noqa: B018


def test_threads_that_use_a_batch_first_at_the_same_time_have_the_same_tensors(monkeypatch):
    unpack = packing.unpack
    monkeypatch.setattr(packing, "unpack", lambda *arguments: time.sleep(0.2) or unpack(*arguments))
    arrived = kept(DataProto.from_dict({"x": torch.ones(4, 2)}))
    with ThreadPoolExecutor(2) as threads:
        one, other = threads.map(lambda _: arrived.batch, range(2))
    assert one is other


def test_who_waits_for_another_thread_that_reads_waits_no_longer_than_for_the_rank(monkeypatch):
    reads, answers, unpack = threading.Event(), threading.Event(), packing.unpack

    def unpack_late(parts, seconds):
        reads.set()
        answers.wait(20)
        return unpack(parts, seconds)

    monkeypatch.setattr(packing, "unpack", unpack_late)
    monkeypatch.setattr(on_device, "LAST_READ_SECONDS", 0.05)
    arrived = kept(DataProto.from_dict({"x": torch.ones(4, 2)}))
    with ThreadPoolExecutor(1) as threads:
        read = threads.submit(lambda: arrived.batch)
        reads.wait()
        packing.read_before_end(["actor"])
        assert arrived._store.is_packed
        answers.set()
        assert torch.equal(read.result()["x"], torch.ones(4, 2))


def test_what_the_process_has_not_read_is_read_before_the_rank_ends():
    data = DataProto.from_dict({"x": torch.ones(4, 2)})
    arrived, half = kept(data), kept(data).slice(0, 2)
    packing.read_before_end(["another"])
    assert arrived._store.keepers
    packing.read_before_end(["actor"])
    on_device._LEASES.clear()
    assert_same_columns(arrived, data)
    assert len(half.batch) == 2
    packing.read_before_end(["actor"])


def test_many_batches_of_a_rank_that_does_not_answer_take_little_longer_than_one(monkeypatch):
    monkeypatch.setattr(on_device, "_actor_id", lambda: "frozen")
    batches = [kept(DataProto.from_dict({"x": torch.ones(4, 2)})) for _ in range(20)]
    waited = []

    def unpack(_, seconds):
        waited.append(seconds)
        raise BatchLostError

    monkeypatch.setattr(packing, "unpack", unpack)
    monkeypatch.setattr(packing, "time", SimpleNamespace(monotonic=lambda: sum(waited)))
    packing.read_before_end(["frozen"])
    assert len(waited) == len(batches)
    assert sum(waited) <= 2 * on_device.LAST_READ_SECONDS


def test_a_batch_for_which_there_is_no_memory_keeps_no_other_from_being_read(monkeypatch, caplog):
    monkeypatch.setattr(on_device, "_actor_id", lambda: "ends")
    large, small = (kept(DataProto.from_dict({"x": torch.ones(rows, 2)})) for rows in (9, 4))
    unpack = packing.unpack

    def unpack_small(parts, seconds):
        if parts[0].rows == 9:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return unpack(parts, seconds)

    monkeypatch.setattr(packing, "unpack", unpack_small)
    packing.read_before_end(["ends"])
    assert (large._store.is_packed, small._store.is_packed) == (True, False)
    assert "cannot be read: OutOfMemoryError('CUDA out of memory')" in caplog.text


def test_batches_may_arrive_while_others_are_read_before_their_rank_ends():
    saved, ended, arrived = pickle.dumps(kept(DataProto.from_dict({"x": torch.ones(4, 2)}))), threading.Event(), []

    def receive():
        while not ended.is_set():
            arrived.append(pickle.loads(saved))

    thread, interval = threading.Thread(target=receive), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        thread.start()
        for _ in range(100):
            packing.read_before_end(["another"])
    finally:
        sys.setswitchinterval(interval)
        ended.set()
        thread.join()
    assert arrived


def test_ctrl_c_while_batches_are_read_leaves_no_ranks(monkeypatch):
    def interrupt(actor_ids):
        raise KeyboardInterrupt

    ended = []
    for module in (worker_group, resource_pool):
        monkeypatch.setattr(module, "read_before_end", interrupt)
    monkeypatch.setattr("ray.kill", ended.append)
    monkeypatch.setattr(resource_pool.placement, "remove", ended.extend)
    ranks = {"workers": ["rank 0", "rank 1"], "actor_ids": ["a", "b"], "stop_notices": lambda: False}
    group = SimpleNamespace(_ranks=SimpleNamespace(is_closed=False, **ranks), _owns_ranks=True)
    pool = RayResourcePool([1])
    pool._owned_groups = ["bundles"]
    for close in (partial(RayWorkerGroup.close, group), pool.close):
        with pytest.raises(KeyboardInterrupt):
            close()
    assert ended == ["rank 0", "rank 1", "bundles"]


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("_SMALLEST", 1000, ""),
        ("is_kept", lambda tensor: False, ""),
        ("_actor_id", lambda: None, ""),
        ("_has_room", lambda device, nbytes: False, ""),
        ("watches_references", lambda: False, "Batches go through host memory: Ray"),
    ],
)
def test_a_batch_goes_through_host_memory_where_that_is_better(monkeypatch, caplog, name, value, says):
    monkeypatch.setattr(on_device, name, value)
    data = DataProto.from_dict({"x": torch.ones(4, 2)})
    with caplog.at_level(logging.WARNING):
        assert data.kept_on_device("step") is data
    assert says in caplog.text


def test_a_batch_goes_through_host_memory_while_the_device_is_full(monkeypatch):
    def full(*args, **kwargs):
        raise torch.OutOfMemoryError

    data = DataProto.from_dict({"x": torch.ones(4, 2)})
    monkeypatch.setattr(torch, "empty", full)
    assert data.kept_on_device("step") is data


class Model:
    @register(Dispatch.DP_COMPUTE_PROTO)
    def forward(self, batch):
        return batch

    @register(Dispatch.DP_COMPUTE_PROTO)
    def loss(self, batch):
        self.inner = self.forward(batch)
        return self.inner


def test_a_method_that_another_one_calls_returns_what_it_has():
    model, data = Model(), DataProto.from_dict({"x": torch.ones(4, 2)})
    returned = model.loss(data)
    assert model.inner is data
    assert returned._store.keepers == {"actor"}
    assert model.forward(data)._store.keepers == {"actor"}
