"""Tensors of every layout in a DataProto: they travel bit-equal with their layout, or are refused by name."""

from __future__ import annotations

import pickle
from functools import reduce

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tensordict import TensorDict

from workergroups import DataProto
from workergroups.protocol import (
    deserialize_tensordict,
    packed_columns,
    pad_dataproto_to_divisor,
    serialize_tensordict,
    unpad_dataproto,
)
from workergroups.transfers.memory import as_integers

from .test_data_proto import travel

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # torch's, of layouts that are not final
DTYPES = [
    torch.float32,
    torch.bfloat16,
    torch.float8_e5m2,
    torch.float4_e2m1fn_x2,
    torch.complex32,
    torch.complex128,
    torch.uint4,
    torch.int2,
    torch.bits16,
    torch.uint64,
    torch.bool,
]


def bits(*shape, dtype=torch.float32):
    """A tensor of random bits, NaNs of every kind among them."""
    size = torch.empty(0, dtype=dtype).element_size()
    count = torch.Size(shape).numel()
    if not count:
        return torch.empty(shape, dtype=dtype)
    if dtype is torch.bool:
        return torch.randint(2, shape, dtype=torch.uint8).bool()
    return torch.randint(256, (count * size,), dtype=torch.uint8).view(dtype).view(shape)


def dense(rows, dtype, lengths):
    return bits(rows, 2, 3, dtype=dtype)


def transposed(rows, dtype, lengths):
    return bits(3, rows, dtype=dtype).t()


def expanded(rows, dtype, lengths):
    return bits(rows, 1, dtype=dtype).expand(rows, 4)


def without_elements(rows, dtype, lengths):
    return torch.empty(rows, 0, 2, dtype=dtype)


def conjugate(rows, dtype, lengths):
    return torch.view_as_complex(torch.randn(rows, 3, 2)).conj()


def offsets_of(lengths, gap=0):
    return torch.tensor([0, *torch.tensor(lengths, dtype=torch.int64).add(gap).cumsum(0).tolist()])


def jagged(rows, dtype, lengths):
    return torch.nested.nested_tensor_from_jagged(bits(sum(lengths), 2, dtype=dtype), offsets_of(lengths))


def jagged_in_its_last_dimension(rows, dtype, lengths):
    values = bits(2, 3, sum(lengths), dtype=dtype)
    return torch.nested.nested_tensor_from_jagged(values, offsets_of(lengths), jagged_dim=3)


def jagged_in_the_middle(rows, dtype, lengths):
    values = bits(2, sum(lengths), 3, dtype=dtype)
    return torch.nested.nested_tensor_from_jagged(values, offsets_of(lengths), jagged_dim=2)


def with_holes(rows, dtype, lengths):
    values = bits(2, sum(lengths) + 2 * rows, dtype=dtype)
    offsets = offsets_of(lengths, gap=2)
    return torch.nested.nested_tensor_from_jagged(values, offsets, lengths=torch.tensor(lengths), jagged_dim=2)


def nested(rows, dtype, lengths):
    return torch.nested.as_nested_tensor([bits(2, length) for length in lengths], layout=torch.strided)


def sparse(rows, dtype, lengths):
    return torch.randn(rows, 4).relu().to_sparse()


def sparse_with_duplicates(rows=4, dtype=None, lengths=()):
    return torch.sparse_coo_tensor(torch.zeros(2, 3, dtype=torch.int64), torch.randn(3), (rows, 4))


ANY_ROWS = [
    dense,
    transposed,
    expanded,
    without_elements,
    conjugate,
    jagged,
    jagged_in_its_last_dimension,
    jagged_in_the_middle,
    with_holes,
    nested,
    sparse,
]
"""Rows of these can be chosen and joined."""


def compressed(layout, block=None):
    def make(rows=4, dtype=None, lengths=()):
        return torch.eye(4).repeat(1, 2).to_sparse(layout=layout, blocksize=block)

    make.__name__ = str(layout)
    return make


def quantized(rows=4, dtype=None, lengths=()):
    return torch.quantize_per_tensor(torch.randn(4, 3), 0.1, 3, torch.qint8)


def quantized_by_row(rows=4, dtype=None, lengths=()):
    return torch.quantize_per_channel(torch.randn(4, 3), torch.rand(4), torch.zeros(4), 0, torch.quint8)


def quantized_in_four_bits(rows=4, dtype=None, lengths=()):
    return torch.quantize_per_channel(torch.randn(4, 3), torch.rand(4), torch.zeros(4), 0, torch.quint4x2)


class Image(torch.Tensor):
    """A user's kind of tensor."""


def of_a_users_class(rows=4, dtype=None, lengths=()):
    return torch.randn(4, 3).as_subclass(Image)


def masked(rows=4, dtype=None, lengths=()):
    return torch.masked.masked_tensor(torch.ones(4, 2), torch.eye(4)[:, :2] > 0)


ONLY_WHOLE = [
    sparse_with_duplicates,
    compressed(torch.sparse_csr),
    compressed(torch.sparse_csc),
    compressed(torch.sparse_bsr, (2, 2)),
    compressed(torch.sparse_bsc, (2, 2)),
    quantized,
    quantized_by_row,
    quantized_in_four_bits,
    of_a_users_class,
    masked,
]
COMPRESSED = {
    torch.sparse_csr: ("crow_indices", "col_indices", "values"),
    torch.sparse_bsr: ("crow_indices", "col_indices", "values"),
    torch.sparse_csc: ("ccol_indices", "row_indices", "values"),
    torch.sparse_bsc: ("ccol_indices", "row_indices", "values"),
    torch.sparse_coo: ("_indices", "_values"),
}


def assert_same_bits(one, two):
    assert (one.dtype, one.layout, one.is_nested) == (two.dtype, two.layout, two.is_nested)
    if one.is_nested:
        if one.layout == torch.jagged:
            assert ragged_dims(one) == ragged_dims(two)
            assert (one.lengths() is None) == (two.lengths() is None)
        for a, b in zip(one.unbind(), two.unbind(), strict=True):
            assert_same_bits(a, b)
    elif one.layout in COMPRESSED:
        assert one.shape == two.shape
        for part in COMPRESSED[one.layout]:
            assert_same_bits(getattr(one, part)(), getattr(two, part)())
        assert one.layout != torch.sparse_coo or one.is_coalesced() == two.is_coalesced()
    elif one.is_quantized:
        assert one.qscheme() == two.qscheme()
        assert torch.equal(one.dequantize(), two.dequantize())
    else:
        assert type(one) is type(two)
        assert one.shape == two.shape
        assert raw(one) == raw(two)


def ragged_dims(tensor):
    return [isinstance(size, int) for size in tensor.shape]


def raw(tensor):
    if isinstance(tensor, torch.masked.MaskedTensor):
        return raw(tensor.get_data()), raw(tensor.get_mask())
    plain = tensor.as_subclass(torch.Tensor).resolve_conj()
    # A NaN equals no other one, and no integer has the size of the largest complex numbers.
    return as_integers(torch.view_as_real(plain) if plain.is_complex() else plain).tolist()


KINDS = st.dictionaries(st.sampled_from(ANY_ROWS), st.sampled_from(DTYPES), min_size=1, max_size=3)
LENGTHS = st.lists(st.integers(0, 3), min_size=1, max_size=6)
"""Of the rows of jagged columns; drawn apart from the tensors, as torch cannot print all of these."""


def assert_same_columns(one, two):
    assert list(one.batch.keys()) == list(two.batch.keys())
    for key, column in one.batch.items():
        assert_same_bits(column, two.batch[key])


def through_disk(data):
    return pickle.loads(pickle.dumps(data))


def through_chunks(data):
    return DataProto.concat([travel(part) for part in travel(data).chunk(len(data))])


def through_splits(data):
    return DataProto.concat([travel(part) for part in data.split(2)])


def through_padding(data):
    padded, added = pad_dataproto_to_divisor(data, 4)
    return unpad_dataproto(travel(padded), added)


def through_own_padding(data):
    return travel(data.padded(2)).slice(0, len(data))


def through_union_and_pop(data):
    other = travel(data).pop([next(iter(data.batch.keys()))])
    popped = travel(data)
    popped.pop([next(iter(data.batch.keys()))])
    return travel(other).union(popped)


def through_union_with_itself(data):
    return travel(data).union(travel(data))


def through_indices(data):
    order = list(reversed(range(len(data))))
    return travel(data[order])[torch.tensor(order, dtype=torch.uint8)]


def through_booleans(data):
    if len(data) == 1:
        return data  # torch has no strided nested tensor without rows
    even = torch.arange(len(data)) % 2 == 0
    order = [*range(0, len(data), 2), *range(1, len(data), 2)]
    halves = DataProto.concat([travel(data[even]), travel(data[~even])])
    return halves[[order.index(row) for row in range(len(data))]]


def through_select(data):
    return travel(travel(data).select(list(data.batch.keys())))


def through_names(data):
    keys = list(data.batch.keys())
    return travel(data.select(keys).rename(keys, keys[::-1])).rename(keys[::-1], keys)


def through_serialization(data):
    return DataProto(deserialize_tensordict(serialize_tensordict(data.batch)))


WAYS = [
    travel,
    through_disk,
    through_chunks,
    through_splits,
    through_padding,
    through_own_padding,
    through_union_and_pop,
    through_union_with_itself,
    through_indices,
    through_booleans,
    through_select,
    through_names,
    through_serialization,
]


@settings(max_examples=40)
@given(kinds=KINDS, lengths=LENGTHS, ways=st.lists(st.sampled_from(WAYS), min_size=1, max_size=3))
def test_columns_of_any_layout_come_back_as_they_were(kinds, lengths, ways):
    columns = {kind.__name__: kind(len(lengths), dtype, lengths) for kind, dtype in kinds.items()}
    data = DataProto.from_dict(columns)
    assert_same_columns(reduce(lambda batch, way: way(batch), ways, data), data)


@pytest.mark.parametrize("kind", ONLY_WHOLE)
def test_whole_columns_of_rarer_layouts_travel(kind):
    column = kind()
    data = DataProto.from_dict({"x": column, "beside": bits(4, dtype=torch.float8_e5m2)})
    for way in (travel, through_disk, through_serialization, through_union_and_pop, through_select):
        assert_same_columns(way(data), data)
    assert travel(data).union(travel(data)).batch["x"].layout == column.layout


@pytest.mark.parametrize(
    ("column", "rows", "layout"),
    [(torch.ones(4, 2).to_mkldnn(), 4, "_mkldnn"), (torch.nested.nested_tensor([]), 0, "strided")],
    ids=["mkldnn", "nested without rows"],
)
def test_what_torch_cannot_write_is_refused_by_name_before_it_is_sent(column, rows, layout):
    data = DataProto(TensorDict({"fine": torch.ones(rows), "x": column}, batch_size=[rows]))
    with pytest.raises(TypeError, match=f"column 'x' cannot be sent, .* layout torch.{layout}"):
        travel(data)


@pytest.mark.parametrize("kind", [compressed(torch.sparse_csr), quantized_by_row])
def test_rows_that_torch_cannot_choose_or_join_are_refused_by_name(kind):
    data = DataProto.from_dict({"fine": torch.ones(4), "x": kind()})
    for operation in (
        lambda: data[[0, 2]],
        lambda: DataProto.concat([data, data]),
        lambda: DataProto.concat([travel(data), travel(data)]),
        lambda: data.padded(2),
    ):
        with pytest.raises(ValueError, match="column 'x': "):
            operation()


def test_a_column_of_a_rarer_layout_comes_to_the_device_of_the_process_that_receives_it(monkeypatch):
    with monkeypatch.context() as sender:
        sender.setattr(torch.serialization, "location_tag", lambda storage: "cuda:3")
        packed = packed_columns.pack_whole(torch.eye(3).to_sparse())
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(packed_columns, "here", {"cuda:3": torch.device("cpu")}.__getitem__)
    assert torch.equal(packed_columns.unpack_whole(packed).to_dense(), torch.eye(3))


def test_jagged_columns_that_share_their_offsets_share_them_where_they_arrive():
    offsets = offsets_of([2, 1])
    pair = [torch.nested.nested_tensor_from_jagged(torch.ones(3), offsets) for _ in range(2)]
    data = travel(DataProto.from_dict({"one": pair[0], "two": pair[1]})).batch
    assert [row.tolist() for row in (data["one"] + data["two"]).unbind()] == [[2, 2], [2]]


def test_a_jagged_column_without_rows_keeps_its_type_and_inner_shape():
    data = DataProto.from_dict({"x": jagged_in_the_middle(2, torch.float16, [1, 2])})[[]]
    for batch in (data, travel(data), DataProto.concat([data, travel(data)])):
        column = batch.batch["x"]
        assert (column.dtype, column.shape[:2], column.shape[3]) == (torch.float16, (0, 2), 3)
