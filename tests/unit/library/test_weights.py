"""Weights from any mesh to any mesh, read by NIXL: every bit arrives, or it is refused by name."""

from __future__ import annotations

import itertools
import subprocess
import sys
import weakref
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from workergroups.errors import WeightsError
from workergroups.transfers import transports
from workergroups.transfers.memory import memory_for
from workergroups.weights import Weights, WeightShard, check_weights
from workergroups.weights.digest import tensor_digest
from workergroups.weights.planning import Plans, Sources
from workergroups.weights.reading import read_parts
from workergroups.weights.regions import Region

from .test_layouts import bits


@pytest.fixture(scope="module", autouse=True)
def nixl():
    """NIXL reads: it can read its own process's memory, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("workergroups.transfers.transports._own", lambda address: None)
        yield


DTYPES = [torch.float32, torch.bfloat16, torch.float8_e4m3fn, torch.int64, torch.bool, torch.complex64]


def cuts(length, parts):
    """As torch.chunk and FSDP cut: some of the last parts may be shorter or empty."""
    size = -(-length // parts)
    return [(min(at * size, length), min(size, max(length - at * size, 0))) for at in range(parts)]


def mesh(shape, parts):
    """The boxes of a mesh with this many parts by dimension, in the order of the ranks."""
    by_dim = [cuts(length, count) for length, count in zip(shape, parts, strict=True)]
    return [Region(*zip(*each, strict=True)) if each else Region((), ()) for each in itertools.product(*by_dim)]


def cut_out(whole, region):
    for dim, (start, size) in enumerate(zip(region.start, region.size, strict=True)):
        whole = whole.narrow(dim, start, size)
    return whole


def publish(named):
    """Publish a list of boxes of each whole tensor; return what the ranks say, and the ranks, which must stay."""
    ranks = [Weights() for _ in range(max(len(boxes) for _, boxes in named.values()))]
    shards = [
        {
            name: WeightShard(cut_out(whole, boxes[at]).clone(), whole.shape, boxes[at].start)
            for name, (whole, boxes) in named.items()
            if at < len(boxes)
        }
        for at in range(len(ranks))
    ]
    return [rank.publish(shard) for rank, shard in zip(ranks, shards, strict=True)], ranks


@st.composite
def tensors_in_two_meshes(draw):
    shape = tuple(draw(st.lists(st.integers(0, 9), max_size=3)))
    meshes = [mesh(shape, [draw(st.integers(1, 4)) for _ in shape]) for _ in range(2)]
    return shape, draw(st.sampled_from(DTYPES)), *meshes


@settings(max_examples=300, deadline=None)
@given(st.lists(tensors_in_two_meshes(), min_size=1, max_size=3), st.booleans())
def test_any_mesh_gets_the_bits_of_any_other(drawn, transposed):
    wholes = {f"layer.{at}": bits(*shape, dtype=dtype) for at, (shape, dtype, _, _) in enumerate(drawn)}
    held = {name: (whole, each[2]) for (name, whole), each in zip(wholes.items(), drawn, strict=True)}
    published, ranks = publish(held)
    for (name, whole), (shape, dtype, _, wanted) in zip(wholes.items(), drawn, strict=True):
        for box in wanted:
            size = box.size[::-1] if transposed else box.size
            part = bits(*size, dtype=dtype)
            part = part.permute(tuple(reversed(range(len(size))))) if transposed else part
            Weights().receive(published, {name: WeightShard(part, shape, box.start)})
            assert same_bits(part, cut_out(whole, box))
    for rank in ranks:
        rank.close()


def same_bits(one, two):
    return one.shape == two.shape and bytes_of(one) == bytes_of(two)


def bytes_of(tensor):
    return bytes(tensor.contiguous().reshape(-1).view(torch.uint8).tolist())


@given(tensors_in_two_meshes())
@settings(deadline=None)
def test_the_digests_of_any_shards_add_up_to_the_same_number(drawn):
    shape, dtype, one, two = drawn
    whole = bits(*shape, dtype=dtype)

    def total(boxes):
        return sum(tensor_digest(cut_out(whole, box).contiguous(), box, shape).item() for box in boxes) % 2**64

    assert total(one) == total(two) == total([Region.whole(shape)])


@given(st.integers(0, 999), st.integers(0, 15))
@settings(deadline=None)
def test_one_flipped_bit_changes_the_digest(at, bit):
    whole = torch.arange(1000, dtype=torch.int16)
    before = tensor_digest(whole, Region.whole((1000,)), (1000,)).item()
    whole[at] ^= -32768 if bit == 15 else 1 << bit
    assert tensor_digest(whole, Region.whole((1000,)), (1000,)).item() != before


def test_exchanged_rows_change_the_digest():
    whole = torch.randn(64, 64)
    region = Region.whole((64, 64))
    swapped = whole[torch.randperm(64)].contiguous()
    assert tensor_digest(whole, region, region.size) != tensor_digest(swapped, region, region.size)


def test_large_pieces_are_read_to_their_place_and_small_ones_with_gaps():
    whole = torch.randn(64, 4096, dtype=torch.float64)
    published, ranks = publish({"w": (whole, mesh(whole.shape, [4, 1]))})
    for parts in ([1, 2], [1, 16], [2, 1], [3, 3]):
        for box in mesh(whole.shape, parts):
            part = torch.empty(box.size, dtype=whole.dtype)
            Weights().receive(published, {"w": WeightShard(part, whole.shape, box.start)})
            assert torch.equal(part, cut_out(whole, box))
    del ranks


def test_types_are_converted_where_they_are_published_or_received():
    trainer, rollout = Weights(), Weights()
    weight = torch.randn(10, 10)
    published = [trainer.publish({"w": weight, "steps": torch.tensor(7)}, dtype=torch.bfloat16)]
    into = {"w": torch.empty(10, 10, dtype=torch.bfloat16), "steps": torch.tensor(0)}
    passport = rollout.receive(published, into)
    assert torch.equal(into["w"], weight.bfloat16())
    assert into["steps"] == 7
    assert passport.digest == trainer.passport.digest
    half = {"w": torch.empty(10, 10, dtype=torch.float16)}
    rollout.receive(published, half)
    assert torch.equal(half["w"], weight.bfloat16().half())


def test_roles_of_one_process_copy(monkeypatch):
    monkeypatch.setattr("workergroups.transfers.transports._own", lambda address: transports._LEASES[address.lease])
    monkeypatch.setattr("workergroups.transfers.transports.NixlTransfer", None)
    actor, rollout = Weights(), Weights()
    weight, into = torch.randn(10, 10), torch.empty(10, 10)
    rollout.receive([actor.publish({"w": weight})], {"w": into})
    assert torch.equal(into, weight)
    actor.close()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_was_made_in_inference_mode_is_filled_outside_of_it(monkeypatch, dtype):
    monkeypatch.setattr("workergroups.transfers.transports._own", lambda address: transports._LEASES[address.lease])
    actor, rollout = Weights(), Weights()
    weight = torch.randn(10, 10)
    with torch.inference_mode():
        actor.publish({"w": weight.t()}, dtype=dtype)
        into = torch.zeros(10, 10)
    weight += 1
    rollout.receive([actor.publish({"w": weight.t()}, dtype=dtype)], {"w": into})
    assert torch.equal(into, weight.t().to(dtype).float())


def test_a_column_of_a_single_element_is_a_tensor_like_others():
    weight, into = torch.randn(3, 100)[-1:, -1], torch.zeros(3, 100)[-1:, -1]
    trainer = Weights()
    Weights().receive([trainer.publish({"w": weight})], {"w": into})
    assert torch.equal(into, weight)


def test_what_another_stream_still_writes_is_waited_for_before_it_is_copied_or_digested(monkeypatch):
    trainer, rollout = Weights(), Weights()
    weight, into = torch.zeros(10), torch.zeros(10, dtype=torch.bfloat16)
    monkeypatch.setattr("workergroups.weights.weights.settle", lambda tensors: weight.fill_(7))
    published = [trainer.publish({"w": weight}, dtype=torch.bfloat16)]
    rollout.receive(published, {"w": into})
    assert into.tolist() == [7.0] * 10
    settled = []
    monkeypatch.setattr("workergroups.weights.weights.settle", settled.extend)
    rollout.receive(published, {"w": into})
    assert len(settled) == 1


@pytest.mark.parametrize("has_nixl", [True, False])
def test_who_has_no_nixl_reads_over_tcp(monkeypatch, has_nixl):
    trainer = Weights()
    with monkeypatch.context() as without:
        if not has_nixl:
            without.setattr("workergroups.transfers.transports._nixl", lambda: None)
        published = [trainer.publish({"w": torch.eye(3), "none": torch.empty(0)})]
    assert (published[0].address.nixl is not None) == has_nixl
    monkeypatch.setattr("workergroups.transfers.transports._nixl", lambda: None)
    into = {"w": torch.zeros(3, 3), "none": torch.empty(0)}
    Weights().receive(published, into)
    assert torch.equal(into["w"], torch.eye(3))


def test_a_stream_yields_whole_tensors_in_the_order_in_which_they_were_published(monkeypatch):
    monkeypatch.setattr("workergroups.weights.reading.BUCKET", 1000)
    wholes = {f"layer.{at}": torch.randn(10 * at + 1, 10) for at in (3, 1, 2, 0)}
    published, ranks = publish({name: (whole, mesh(whole.shape, [2, 1])) for name, whole in wholes.items()})
    rollout = Weights()
    streamed = dict(rollout.stream(published, device="cpu"))
    assert list(streamed) == list(wholes)
    assert all(torch.equal(streamed[name], whole) for name, whole in wholes.items())
    assert rollout.passport.version == 1
    assert rollout.publish({}).passport.version == 2
    assert len(ranks) == 2


def test_a_stream_has_one_bucket_at_a_time_if_its_reader_keeps_none(monkeypatch):
    monkeypatch.setattr("workergroups.weights.reading.BUCKET", 1)
    trainer, there, yielded = Weights(), [], []
    monkeypatch.setattr(
        "workergroups.weights.weights.memory_for",
        lambda *arguments: there.append(sum(each() is not None for each in yielded)) or memory_for(*arguments),
    )
    stream = Weights().stream([trainer.publish({"a": torch.eye(3), "b": torch.eye(3)})], device="cpu")
    for _ in range(2):
        yielded.append(weakref.ref(next(stream)[1]))
    assert there == [0, 0]


def test_weights_that_change_while_they_are_read_are_named():
    trainer, rollout = Weights(), Weights()
    weights = {"w": torch.randn(10), "b": torch.randn(3)}
    published = [trainer.publish(weights)]
    weights["b"].add_(1)
    with pytest.raises(WeightsError, match=r"'b' of version 1 arrived with other bits than process .* published"):
        rollout.receive(published, {"w": torch.empty(10), "b": torch.empty(3)})
    assert rollout.passport is None
    assert rollout.receive([trainer.publish(weights)], {"b": torch.empty(3)}).version == 2


def test_what_cannot_be_received_is_refused_by_name():
    whole = torch.randn(8, 4)
    published, ranks = publish({"w": (whole, mesh(whole.shape, [2, 1]))})
    receive = Weights().receive
    with pytest.raises(WeightsError, match=r"pass the list of what each rank's publish"):
        receive([], {"w": whole.clone()})
    with pytest.raises(WeightsError, match=r"no rank published 'v'; there are 1 tensors: w"):
        receive(published, {"v": whole.clone()})
    with pytest.raises(WeightsError, match=r"'w' was published with the shape \(8, 4\), not \(4, 8\)"):
        receive(published, {"w": torch.empty(4, 8)})
    with pytest.raises(WeightsError, match=r"of 'w', 16 of 32 elements were published by no rank \(from \(4, 0\)\)"):
        receive(published[:1], {"w": whole.clone()})
    with pytest.raises(WeightsError, match=r"different versions, 1 .* and 9 .* the same number, such as version=10$"):
        receive([published[0], ranks[1].publish({"w": WeightShard(whole[4:], (8, 4), (4, 0))}, version=9)], {})


def test_only_what_has_changed_is_read_again(monkeypatch):
    read = []

    def counted(sources, parts, deadline):
        read.append(list(parts))
        read_parts(sources, parts, deadline)

    monkeypatch.setattr("workergroups.weights.weights.read_parts", counted)
    trainer, rollout = Weights(), Weights()
    tensors = {"frozen": torch.randn(10), "trained": torch.randn(10), "also.frozen": torch.randn(3)}
    into = {name: torch.zeros_like(tensor) for name, tensor in tensors.items()}
    rollout.receive([trainer.publish(tensors)], into)
    tensors["trained"] += 1
    into["also.frozen"][1] = 7  # by somebody else
    into["frozen"] = torch.zeros(10)
    rollout.receive([trainer.publish(tensors)], into)
    assert read == [["frozen", "trained", "also.frozen"], ["trained"], ["frozen", "also.frozen"]]
    assert all(torch.equal(into[name], tensor) for name, tensor in tensors.items())
    assert rollout.passport.digest == trainer.passport.digest
    rollout.receive([trainer.publish(tensors, dtype=torch.bfloat16)], into)
    assert read[-1] == list(tensors)


def test_a_new_rank_gets_the_weights_of_its_peers():
    ranks = [Weights() for _ in range(3)]
    tensors = [{"w": torch.randn(10)} for _ in ranks]
    trainer = Weights()
    for rank, into in zip(ranks, tensors, strict=True):
        rank.receive([trainer.publish({"w": torch.arange(10.0)}, version=7)], into)
    ranks[1], tensors[1]["w"] = Weights(), torch.zeros(10)
    shared = [
        rank.publish(held, version=rank.passport.version) if rank.passport else None
        for rank, held in zip(ranks, tensors, strict=True)
    ]
    passports = [rank.receive(shared, into) for rank, into in zip(ranks, tensors, strict=True)]
    assert torch.equal(tensors[1]["w"], torch.arange(10.0))
    assert [passport.version for passport in passports] == [7, 7, 7]
    check_weights(passports)


def test_ranks_may_shard_anew_between_two_steps():
    whole, rollout = torch.randn(8, 4), Weights()
    for parts in ([2, 1], [2, 1], [4, 1], [1, 2]):
        whole += 1
        published, ranks = publish({"w": (whole, mesh(whole.shape, parts))})
        into = torch.empty(8, 4)
        rollout.receive([replace(each, passport=replace(each.passport, version=1)) for each in published], {"w": into})
        assert torch.equal(into, whole)
        del ranks


def test_ranks_that_published_other_types_are_named():
    ranks = Weights(), Weights()
    published = [
        rank.publish({"w": WeightShard(torch.zeros(2, dtype=dtype), (4,), (at,))})
        for rank, dtype, at in zip(ranks, (torch.float32, torch.bfloat16), (0, 2), strict=True)
    ]
    with pytest.raises(WeightsError, match=r"'w' is torch.float32 of shape \(4,\) on .*, and torch.bfloat16 of shape"):
        Weights().receive(published, {"w": torch.empty(4)})


def test_what_cannot_be_published_is_refused_by_name():
    publish = Weights().publish
    with pytest.raises(TypeError, match=r"'w' is a str, not a tensor"):
        publish({"w": "bf16"})
    with pytest.raises(
        TypeError, match=r"'w' is a torch.complex128 of layout torch.strided, which cannot be published"
    ):
        publish({"w": torch.zeros(2, dtype=torch.complex128)})
    with pytest.raises(TypeError, match=r"'w' is a torch.float32 of layout torch.sparse_coo"):
        publish({"w": torch.eye(2).to_sparse()})
    with pytest.raises(
        WeightsError, match=r"'w': a part of shape \(2, 2\) that begins at \(3, 0\) does not fit into \(4, 2\)"
    ):
        publish({"w": WeightShard(torch.eye(2), (4, 2), (3, 0))})
    with pytest.raises(WeightsError, match=r"'w' comes twice"):
        publish([("w", torch.eye(2)), ("w", torch.eye(2))])
    with pytest.raises(TypeError, match=r"'v' is on the device meta, so it has no values"):
        publish({"w": torch.eye(2), "v": torch.empty(2, device="meta")})


def test_replicas_share_the_work_of_being_read():
    tensors = {f"layer.{at}": torch.randn(4, 4) for at in range(8)}
    ranks = [Weights(), Weights()]
    sources = Sources([rank.publish(tensors) for rank in ranks], node="", reader=0, plans=Plans())
    read = [read.source for whole in sources.wholes for read in sources.plan(whole).reads]
    assert read == [0, 1] * 4


@pytest.mark.parametrize("reader", ["0", "1"])
def test_of_replicas_that_differ_a_rank_has_the_one_that_it_reads(monkeypatch, reader):
    monkeypatch.setenv("RANK", reader)
    ranks, into = [Weights(), Weights()], torch.zeros(4)
    published = [rank.publish({"w": torch.full((4,), float(at))}) for at, rank in enumerate(ranks)]
    Weights().receive(published, {"w": into})
    assert into.tolist() == [float(reader)] * 4


def passports(*held):
    """Of ranks that each hold a version, and these tensors or shards."""
    ranks = [Weights() for _ in held]
    named = [(rank, version, shards) for rank, (version, shards) in zip(ranks, held, strict=True)]
    told = [rank.publish(shards, version=version).passport for rank, version, shards in named]
    return [replace(each, rank=f"rank {at}") for at, each in enumerate(told)]


def test_ranks_that_hold_the_same_weights_agree():
    whole, bias = torch.randn(8, 6), torch.randn(6)
    rows = [WeightShard(cut_out(whole, box), whole.shape, box.start) for box in mesh(whole.shape, [3, 1])]
    columns = [WeightShard(cut_out(whole, box), whole.shape, box.start) for box in mesh(whole.shape, [1, 2])]
    trainer = [replace(each, group="trainer") for each in passports(*((4, {"w": part, "b": bias}) for part in rows))]
    rollout = [replace(each, group="rollout") for each in passports(*((4, {"w": part, "b": bias}) for part in columns))]
    check_weights(trainer + rollout)


def test_a_rank_with_other_bits_or_an_old_version_is_named():
    weight = torch.randn(100)
    flipped = weight.clone()
    flipped.view(torch.int32)[50] ^= 1
    with pytest.raises(WeightsError, match=r"^'w' of rank 1 has other bits than that of rank 0, rank 2$"):
        check_weights(passports((1, {"w": weight}), (1, {"w": flipped}), (1, {"w": weight})))
    with pytest.raises(
        WeightsError, match=r"^'w' of rank 1 has other bits than that of rank 0 \(one of the two is wrong\)$"
    ):
        check_weights(passports((1, {"w": weight}), (1, {"w": flipped})))
    with pytest.raises(WeightsError, match=r"^rank 0 has version 3, and others have version 4$"):
        check_weights(passports((3, {"w": weight}), (4, {"w": weight}), (4, {"w": weight})))
    with pytest.raises(WeightsError, match=r"^passports 1 of 2 are None"):
        check_weights([*passports((1, {"w": weight})), None])


def test_groups_with_other_shards_are_compared_by_their_sums():
    whole = torch.randn(8, 6)
    rows = [WeightShard(cut_out(whole, box).clone(), whole.shape, box.start) for box in mesh(whole.shape, [2, 1])]
    columns = [WeightShard(cut_out(whole, box).clone(), whole.shape, box.start) for box in mesh(whole.shape, [1, 2])]
    trainer = [replace(each, group="trainer") for each in passports(*((1, {"w": part}) for part in rows))]
    columns[1].tensor[0, 0] += 1
    rollout = [replace(each, group="rollout") for each in passports(*((1, {"w": part}) for part in columns))]
    with pytest.raises(WeightsError, match=r"^'w' has other bits in trainer than in rollout$"):
        check_weights(trainer + rollout)


def test_a_process_that_has_published_ends_without_a_word():
    code = "import torch; from workergroups import Weights; weights = Weights(); weights.publish({'w': torch.eye(3)})"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
