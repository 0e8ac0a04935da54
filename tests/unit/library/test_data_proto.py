"""DataProto alone, without ranks."""

from __future__ import annotations

import copy
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from workergroups import DataProto, DataProtoConfig, Dispatch
from workergroups.protocol import (
    deserialize_tensordict,
    fold_batch_dim,
    pad_dataproto_to_divisor,
    serialize_tensordict,
    unfold_batch_dim,
    union_numpy_dict,
    unpad_dataproto,
)
from workergroups.single_controller.base.decorator import (
    collect_dp_compute_data_proto,
    dispatch_dp_compute_data_proto,
    get_predefined_dispatch_fn,
    make_nd_compute_dataproto_dispatch_fn,
)
from workergroups.single_controller.base.dispatch import (
    Padding,
    chunk_arguments,
    cut_padding,
    pad_arguments,
    take_padding,
)

DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float8_e4m3fn, torch.int64, torch.uint8, torch.bool]


def tensor_of(rows, shape, dtype):
    count = int(np.prod([rows, *shape], dtype=int))
    return torch.randint(0, 2, (count,)).to(dtype).reshape(rows, *shape)


@st.composite
def batches(draw, rows=None):
    count = draw(st.integers(0, 12)) if rows is None else rows
    shapes = st.lists(st.integers(0, 3), max_size=2)
    tensors = {
        f"t{i}": tensor_of(count, draw(shapes), draw(st.sampled_from(DTYPES))) for i in range(draw(st.integers(0, 3)))
    }
    if count and draw(st.booleans()):
        lengths = draw(st.lists(st.integers(1, 4), min_size=count, max_size=count))
        rows_of = [torch.arange(length, dtype=torch.float32) for length in lengths]
        tensors["jagged"] = torch.nested.as_nested_tensor(rows_of, layout=torch.jagged)
    others = {"names": [f"row {i}" for i in range(count)]} if draw(st.booleans()) else {}
    meta = draw(st.dictionaries(st.sampled_from(["step", "temperature"]), st.integers()))
    return DataProto.from_dict(tensors, others, meta)


def assert_same(one, two):
    assert len(one) == len(two)
    names = [] if one.batch is None else list(one.batch.keys())
    assert names == ([] if two.batch is None else list(two.batch.keys()))
    for name in names:
        a, b = one.batch[name], two.batch[name]
        assert a.dtype == b.dtype
        rows = zip(a.unbind(), b.unbind(), strict=True) if a.is_nested else [(a, b)]
        for x, y in rows:
            assert x.shape == y.shape
            assert torch.equal(x.view(torch.uint8), y.view(torch.uint8)) if x.numel() and x.dim() else True
    assert one.non_tensor_batch.keys() == two.non_tensor_batch.keys()
    for name, column in one.non_tensor_batch.items():
        assert column.tolist() == two.non_tensor_batch[name].tolist()
    assert one.meta_info == two.meta_info


def travel(data):
    """What arrives in another process: buffers out of band, in read-only memory."""
    buffers = []
    stream = pickle.dumps(data, protocol=5, buffer_callback=buffers.append)
    return pickle.loads(stream, buffers=[memoryview(bytes(buffer)) for buffer in buffers])


@given(data=batches(), chunks=st.integers(1, 5))
def test_concat_after_chunk_is_the_identity(data, chunks):
    padded, _ = pad_dataproto_to_divisor(data, chunks)
    assert_same(DataProto.concat(padded.chunk(chunks)), padded)
    assert_same(DataProto.concat(travel(padded).chunk(chunks)), padded)


@given(data=batches(), divisor=st.integers(1, 7))
def test_unpad_after_pad_is_the_identity(data, divisor):
    padded, added = pad_dataproto_to_divisor(data, divisor)
    assert len(padded) % divisor == 0
    assert_same(unpad_dataproto(padded, added), data)


@given(data=batches())
def test_batches_arrive_as_they_left(data):
    assert_same(travel(data), data)
    assert_same(travel(travel(data)), data)
    assert_same(copy.deepcopy(data), data)
    if data.batch is not None:
        decoded = DataProto(deserialize_tensordict(serialize_tensordict(data.batch)), data.non_tensor_batch)
        assert_same(decoded, DataProto(data.batch, data.non_tensor_batch))


@given(parts=st.lists(st.integers(0, 3), min_size=1, max_size=4))
def test_joining_what_arrived_from_several_ranks(parts):
    columns = torch.arange(sum(parts) * 2).view(-1, 2)
    whole = DataProto.from_dict({"a": columns}, meta_info={"step": 1})
    starts = [sum(parts[:i]) for i in range(len(parts))]
    pieces = [travel(whole[start : start + size]) for start, size in zip(starts, parts, strict=True)]
    assert_same(DataProto.concat(pieces), whole)


@given(data=batches(), ranks=st.integers(1, 5))
def test_collecting_what_was_dispatched_is_the_identity(data, ranks):
    group = SimpleNamespace(world_size=ranks)
    data.meta_info[DataProtoConfig.auto_padding_key] = True
    (chunks,), keywords = dispatch_dp_compute_data_proto(group, data)
    assert len({len(chunk) for chunk in chunks}) == 1
    output = collect_dp_compute_data_proto(group, [travel(chunk) for chunk in chunks])
    assert_same(cut_padding(output, take_padding(keywords) or Padding(len(data), len(data))), data)


class References:
    """Where a batch's rows are, as verl's BatchMeta."""

    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def chunk(self, chunks):
        size = len(self) // chunks
        return [References(self.rows[start : start + size]) for start in range(0, len(self), size)]

    @classmethod
    def concat(cls, data):
        return cls([row for part in data for row in part.rows])


def test_other_classes_of_batches_are_dispatched_and_collected_too():
    group = SimpleNamespace(world_size=2)
    (chunks,), _ = dispatch_dp_compute_data_proto(group, References([1, 2, 3, 4]))
    assert [chunk.rows for chunk in chunks] == [[1, 2], [3, 4]]
    assert collect_dp_compute_data_proto(group, chunks).rows == [1, 2, 3, 4]
    with pytest.raises(TypeError, match="int, which cannot be joined"):
        collect_dp_compute_data_proto(group, [1, 2])


def test_what_arrived_can_be_written_to_without_changing_what_was_sent():
    sent = DataProto.from_dict({"a": torch.zeros(4)})
    buffers = []
    stream = pickle.dumps(sent, protocol=5, buffer_callback=buffers.append)
    shared = [memoryview(bytes(buffer)) for buffer in buffers]
    first, second = pickle.loads(stream, buffers=shared), pickle.loads(stream, buffers=shared)
    first.batch["a"] += 1
    assert second.batch["a"].tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(
    "column",
    [
        torch.zeros(3, 1024)[-1:, -1],
        torch.arange(12.0).view(3, 4).t(),
        torch.zeros(1).expand(4, 3),
        torch.arange(8)[::2],
        torch.complex(torch.ones(2), torch.ones(2)).conj(),
        torch.zeros(0, 3),
        torch.eye(3).to_sparse(),
        torch.nn.Parameter(torch.ones(2, 2)),
    ],
    ids=["one element", "transposed", "expanded", "every other", "conjugate", "no rows", "sparse", "parameter"],
)
def test_any_column_that_torch_accepts_travels(column):
    copy = travel(DataProto.from_dict({"v": column}))
    assert torch.equal(copy.batch["v"].to_dense(), column.to_dense())


def test_tensors_travel_out_of_band():
    data = DataProto.from_dict({"a": torch.zeros(1 << 20)})
    assert data.nbytes == 4 << 20
    stream = pickle.dumps(data, protocol=5, buffer_callback=lambda buffer: None)
    assert len(stream) < 1000


@pytest.fixture
def data():
    return DataProto.from_dict(
        {"a": torch.arange(6), "b": torch.arange(12).view(6, 2)}, {"n": list("uvwxyz")}, {"step": 1, "lr": 0.1}
    )


def test_rows_are_chosen_by_slices_indices_and_booleans(data):
    assert data[1:3].batch["a"].tolist() == [1, 2]
    assert data[::2].non_tensor_batch["n"].tolist() == ["u", "w", "y"]
    for index in ([5, 0], np.array([5, 0]), torch.tensor([5, 0])):
        assert data[index].batch["a"].tolist() == [5, 0]
        assert data[index].non_tensor_batch["n"].tolist() == ["z", "u"]
    assert data.select_idxs(data.batch["a"] > 3).batch["a"].tolist() == [4, 5]
    row = data[2]
    assert (row.batch["a"], row.non_tensor_batch["n"], row.meta_info["step"]) == (2, "w", 1)


def test_select_takes_some_columns_and_pop_removes_them(data):
    chosen = data.select(["a"], ["n"], ["lr"])
    assert (list(chosen.batch.keys()), list(chosen.non_tensor_batch), chosen.meta_info) == (["a"], ["n"], {"lr": 0.1})
    popped = data.pop(["b"], ["n"], ["lr"])
    assert popped.batch["b"].shape == (6, 2)
    assert (list(data.batch.keys()), data.non_tensor_batch, data.meta_info) == (["a"], {}, {"step": 1})
    with pytest.raises(KeyError, match="batch has no 'b'; it has a"):
        data.pop(["a", "b"])
    assert list(data.batch.keys()) == ["a"]


def test_rename_and_union(data):
    other = DataProto.from_dict({"c": torch.ones(6)}, meta_info={"step": 1, "epoch": 2})
    data.rename("a", "x").union(other)
    assert list(data.batch.keys()) == ["b", "x", "c"]
    assert data.meta_info == {"step": 1, "lr": 0.1, "epoch": 2}
    with pytest.raises(ValueError, match="a new name for each old one"):
        data.rename(["x"], ["y", "z"])


def test_what_arrived_is_not_copied_to_choose_or_to_add_columns(data):
    other = DataProto.from_dict({"c": torch.ones(6)})
    arrived, more = (DataProto.concat([travel(part) for part in batch.chunk(2)]) for batch in (data, other))
    popped = arrived.pop(["b"], meta_info_keys=["lr"])
    arrived.union(more)
    chosen = arrived.select(["c", "a"], [], [])
    assert all(batch._store.is_packed for batch in (arrived, more, popped, chosen))
    with pytest.raises(KeyError, match="batch has no 'b'; it has a, c"):
        arrived.pop(["a", "b"])
    assert_same(popped, DataProto.from_dict({"b": data.batch["b"]}, meta_info={"lr": 0.1}))
    assert_same(chosen, DataProto.from_dict({"c": torch.ones(6), "a": data.batch["a"]}))
    assert_same(
        arrived, DataProto.from_dict({"a": data.batch["a"], "c": torch.ones(6)}, {"n": list("uvwxyz")}, {"step": 1})
    )


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"tensors": {"a": torch.zeros(6)}}, "column 'a' is in both"),
        ({"tensors": {"c": torch.zeros(5)}}, "equal batch sizes, not .6,. and .5,."),
        ({"tensors": {"c": torch.zeros(6)}, "non_tensors": {"n": list("uvwxyy")}}, "column 'n' is in both"),
        ({"tensors": {"c": torch.zeros(6)}, "meta_info": {"step": 2}}, "meta_info key 'step' is in both"),
    ],
)
def test_a_union_of_conflicting_batches_names_the_key(data, other, message):
    with pytest.raises(ValueError, match=message):
        data.union(DataProto.from_dict(**other))


def test_nan_does_not_conflict_with_itself():
    one = {"x": np.array([1.0, np.nan]), "o": np.array([float("nan"), "a"], dtype=object)}
    assert union_numpy_dict(dict(one), copy.deepcopy(one)).keys() == {"x", "o"}


def test_conflicting_meta_info_is_named_when_results_are_joined(data):
    other = data[:3]
    other.meta_info["step"] = 2
    with pytest.raises(ValueError, match="Conflicting values for meta_info key 'step': 1 and, in batch 1, 2"):
        DataProto.concat([data, other])


def test_metrics_of_ranks_are_listed_in_rank_order():
    ranks = [
        DataProto.from_dict({"a": torch.zeros(1)}, meta_info={"metrics": metrics})
        for metrics in ({"loss": 1}, [{"loss": 2}, {"loss": 3}], None)
    ]
    assert DataProto.concat(ranks).meta_info["metrics"] == {"loss": [1, 2, 3]}


def test_rows_repeat_in_turn_or_as_a_whole(data):
    small = data[:2]
    assert small.repeat(2).batch["a"].tolist() == [0, 0, 1, 1]
    assert small.repeat(2, interleave=False).non_tensor_batch["n"].tolist() == ["u", "v", "u", "v"]
    for times in ([2, 1], (2, 1), np.array([2, 1]), torch.tensor([2, 1])):
        assert small.sample_level_repeat(times).batch["a"].tolist() == [0, 0, 1]


def test_columns_unfold_into_rows():
    data = DataProto.from_dict({"pair": torch.arange(8).view(2, 4), "id": torch.tensor([7, 8])})
    unfolded = data.unfold_column_chunks(2, split_keys=["pair"])
    assert unfolded.batch["pair"].tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert unfolded.batch["id"].tolist() == [7, 7, 8, 8]


def test_sequences_are_unfolded_to_a_column_of_two_dimensions():
    data = DataProto.from_dict({"id": torch.tensor([7, 8])}, {"pair": [["a", "b"], ["c", "d"]]})
    unfolded = data.unfold_column_chunks(2, split_keys=["pair"])
    assert unfolded.non_tensor_batch["pair"].tolist() == [["a"], ["b"], ["c"], ["d"]]


def test_what_verl_asserts_raises_an_error_that_is_an_assertion_error_too(data):
    for misuse in (lambda: data.chunk(4), lambda: data.pop(["c"]), lambda: DataProto.from_single_dict({"a": 1})):
        with pytest.raises(AssertionError):
            misuse()


def test_folding_the_batch_dimension_and_back(data):
    folded = fold_batch_dim(data, 2)
    assert folded.batch["b"].shape == (2, 3, 2)
    assert folded.non_tensor_batch["n"].shape == (2, 3)
    assert_same(unfold_batch_dim(folded), data)


def test_the_same_seed_gives_the_same_mini_batches(data):
    def order(seed):
        batches = data.make_iterator(2, epochs=2, seed=seed, dataloader_kwargs={"shuffle": True})
        return [batch.batch["a"].tolist() for batch in batches]

    assert len(order(1)) == 6
    assert order(1) == order(1) != order(2)
    assert sorted(row for batch in order(1)[:3] for row in batch) == list(range(6))
    with pytest.raises(ValueError, match="mini_batch_size 4 does not divide 6 rows"):
        data.make_iterator(4, epochs=1)


def test_reorder_split_and_tensordict(data, tmp_path):
    assert [len(part) for part in data.split(4)] == [4, 2]
    assert_same(DataProto.from_tensordict(data.to_tensordict()), data)
    data.save_to_disk(tmp_path / "batch")
    assert_same(DataProto.load_from_disk(tmp_path / "batch"), data)
    data.reorder(torch.tensor([5, 4, 3, 2, 1, 0]))
    assert data.batch["a"].tolist() == [5, 4, 3, 2, 1, 0]
    assert data.non_tensor_batch["n"].tolist() == list("zyxwvu")


def test_padding_for_a_dispatch_leaves_the_callers_batch_alone():
    data = DataProto.from_dict({"a": torch.arange(5)}, auto_padding=True)
    (padded,), _, padding = pad_arguments(4, [data], {})
    assert padded.batch["a"].tolist() == [0, 1, 2, 3, 4, 4, 4, 4]
    assert padding == Padding(rows=5, padded_rows=8)
    assert len(data) == 5
    other = DataProto.from_dict({"a": torch.arange(6)}, auto_padding=True)
    with pytest.raises(ValueError, match="padded must have one length"):
        pad_arguments(4, [data, other], {})


class Mesh:
    """Two dp ranks of two tp ranks each; the results are those of tp 0."""

    world_size = 4

    def __init__(self):
        self._mesh_plans, self._dispatch_info, self._collect_info = {}, {}, {}

    def _query_dispatch_info(self, mesh):
        return [0, 0, 1, 1]

    def _query_collect_info(self, mesh):
        return [True, False, True, False]

    def share(self, value):
        return value


@pytest.mark.parametrize("rows", [1, 4, 5])
@pytest.mark.parametrize(
    ("fns", "function"),
    [
        (make_nd_compute_dataproto_dispatch_fn("infer"), ()),
        (get_predefined_dispatch_fn(Dispatch.DP_COMPUTE_PROTO_WITH_FUNC), (len,)),
        (get_predefined_dispatch_fn(Dispatch.DP_COMPUTE_PROTO), ()),
    ],
    ids=["mesh", "function", "ranks"],
)
@pytest.mark.parametrize("by_name", [True, False])
def test_every_mode_that_splits_batches_pads_those_that_have_it_on(rows, fns, function, by_name):
    data = DataProto.from_dict({"a": torch.arange(rows)}, auto_padding=True)
    group = Mesh()
    given, named = ((), {"data": data}) if by_name else ((data,), {})
    args, kwargs = fns["dispatch_fn"](group, *function, *given, **named)
    padding = take_padding(kwargs)
    chunks = kwargs["data"] if by_name else args[-1]
    assert len({len(chunk) for chunk in chunks}) == 1
    output = fns["collect_fn"](group, chunks)
    assert_same(output if padding is None else cut_padding(output, padding), data)


@pytest.mark.parametrize("auto_padding", [True, False])
def test_padding_is_only_advised_to_who_has_it_off(auto_padding):
    data = DataProto.from_dict({"a": torch.arange(5)}, auto_padding=auto_padding)
    with pytest.raises(ValueError, match=r"argument 0 has 5 rows, .*: pass 8 rows") as refused:
        chunk_arguments(4, [data], {})
    assert ("auto_padding" in str(refused.value)) is not auto_padding


@pytest.mark.parametrize(("value", "expected"), [("1", True), ("true", True), ("0", False), ("", False)])
def test_padding_is_on_by_a_variable_as_in_verl(monkeypatch, value, expected):
    monkeypatch.setenv("VERL_AUTO_PADDING", value)
    assert DataProto().is_padding_enabled() is expected


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: DataProto.from_dict({"a": torch.zeros(2), "b": torch.zeros(3)}), ValueError, "same first dimension"),
        (lambda: DataProto.from_dict({"a": torch.zeros(2)}, {"n": [1]}), ValueError, r"'n'\] has 1 rows, .* has 2"),
        (lambda: DataProto(non_tensor_batch={"n": [1]}), TypeError, "must be a numpy array, not a list"),
        (lambda: DataProto.from_single_dict({"a": 1}), TypeError, "column 'a' must be a tensor or a numpy array"),
        (lambda: DataProto.concat([]), ValueError, "nothing to concatenate"),
        (lambda: DataProto.from_dict({"a": torch.zeros(3)}).chunk(2), ValueError, "3 rows do not divide into 2"),
    ],
)
def test_what_cannot_be_a_batch_says_why(make, error, message):
    with pytest.raises(error, match=message):
        make()
