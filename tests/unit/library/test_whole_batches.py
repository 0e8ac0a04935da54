"""No operation of a DataProto drops a column or a row without an error that names it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tensordict import TensorDict

from workergroups import DataProto
from workergroups.protocol import unpad_dataproto

from .test_data_proto import assert_same, travel


def batch(rows=3, tensors=(), others=()):
    return DataProto.from_dict(
        {name: torch.arange(rows) for name in tensors}, {name: list(range(rows)) for name in others}
    )


@pytest.mark.parametrize("arrived", [lambda data: data, travel], ids=["here", "arrived"])
@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([batch(tensors="a"), batch(tensors=["a", "adv"])], "batch 0 has no tensor 'adv', which batch 1 has"),
        ([batch(tensors=["a", "adv"]), batch(tensors="a")], "batch 1 has no tensor 'adv', which batch 0 has"),
        ([batch(tensors="a"), batch(tensors="b")], "batch 1 has no tensor 'a', which batch 0 has"),
        ([batch(tensors="a"), batch(tensors="a", others=["img"])], "batch 0 has no column 'img', which batch 1 has"),
        ([batch(tensors="a", others=["img"]), batch(tensors="a")], "batch 1 has no column 'img', which batch 0 has"),
        ([batch(others=["n"]), batch(tensors="a", others=["n"])], "batch 0 has no tensor 'a', which batch 1 has"),
        ([batch(tensors="a", others=["n"]), batch(others=["n"])], "batch 1 has no tensor 'a', which batch 0 has"),
        ([DataProto(), batch(tensors="a")], "batch 0 has no tensor 'a', which batch 1 has"),
        ([batch(tensors="a")] * 2 + [batch(tensors="ab")], "batch 0 has no tensor 'b', which batch 2 has"),
    ],
)
def test_batches_are_only_joined_if_they_have_the_same_columns(parts, message, arrived):
    with pytest.raises(ValueError, match=message):
        DataProto.concat([arrived(part) for part in parts])


def test_rows_without_columns_are_joined_as_well():
    empty = DataProto(TensorDict({}, batch_size=[2]))
    assert len(DataProto.concat([DataProto(), empty])) == len(DataProto.concat([empty, DataProto()])) == 2
    assert DataProto.concat([DataProto(meta_info={"a": 1})] * 2).batch is None


@pytest.mark.parametrize(
    "operation",
    [
        lambda data: data.chunk(2),
        lambda data: data.split(2),
        lambda data: data[:2],
        lambda data: data[0],
        lambda data: data[[0, 1]],
        lambda data: data.select(["a"]),
        lambda data: data.repeat(2),
        lambda data: DataProto.concat([data, data]),
        lambda data: data.union(batch(4, tensors="b")),
        lambda data: batch(4, tensors="b").union(data),
        lambda data: data.to_tensordict(),
    ],
)
@pytest.mark.parametrize("rows", [3, 6])
def test_a_column_that_has_been_given_another_length_is_named(operation, rows):
    data = batch(4, tensors="a")
    data.non_tensor_batch["n"] = np.arange(rows)
    with pytest.raises(ValueError, match=r"non_tensor_batch\['n'\] has"):
        operation(data)


def test_a_union_of_other_numbers_of_rows_is_refused_and_changes_nothing():
    for one, two in [
        (batch(0, others=["n"]), batch(3, tensors="a")),
        (batch(3, tensors="a"), batch(0, others=["n"])),
        (batch(3, others=["n"]), batch(2, others=["m"])),
    ]:
        with pytest.raises(ValueError, match="a union needs equal lengths"):
            one.union(two)
    data, other = batch(tensors="a", others=["n"]), batch(tensors="b", others=["n"])
    other.meta_info["step"] = 1
    other.non_tensor_batch["n"][0] = 7
    with pytest.raises(ValueError, match="column 'n' is in both"):
        data.union(other)
    assert_same(data, batch(tensors="a", others=["n"]))


def test_columns_change_their_names_and_none_takes_anothers_place():
    data = batch(tensors="abc")
    data.batch["b"] += 1
    data.rename(["a", "b"], ["b", "a"])
    assert (data.batch["a"] - data.batch["b"]).tolist() == [1, 1, 1]
    for old, new, message in [
        ("a", "c", "two tensors would be called 'c'"),
        (["a", "b"], ["x", "x"], "two tensors would be called 'x'"),
        ("d", "e", "batch has no 'd'; it has"),
        (["a", "a"], ["x", "y"], "'a' is named twice"),
    ]:
        with pytest.raises(AssertionError, match=message):
            data.rename(old, new)
    assert set(data.batch.keys()) == set("abc")
    with pytest.raises(KeyError, match="batch has no 'n'; it has nothing"):
        batch(others=["n"]).rename("n", "m")


def test_a_column_that_is_popped_twice_stays():
    data = batch(tensors="a", others=["n"])
    for keys in (["a", "a"], None), (None, ["n", "n"]):
        with pytest.raises(KeyError, match="is named twice"):
            data.pop(*keys)
    assert_same(data, batch(tensors="a", others=["n"]))


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (lambda data: data.split(-1), "split_size must be positive"),
        (lambda data: data.chunk(-2), "at least one chunk"),
        (lambda data: data.sample_level_repeat([2]), "a number for each of the 4 rows"),
        (lambda data: unpad_dataproto(data, 5), "5 rows of padding cannot be cut off 4"),
        (lambda data: unpad_dataproto(data, -1), "-1 rows of padding cannot be cut off 4"),
        (lambda data: data.unfold_column_chunks(2, ["a"]), "the rows of column 'a' do not divide into 2"),
        (lambda data: DataProto.from_dict({}, {"n": {"x": 1}}), "column 'n' must be an array or a sequence"),
        (lambda data: DataProto.from_dict({}, {"n": "abc"}), "column 'n' must be an array or a sequence"),
        (lambda data: DataProto.from_dict({}, {"n": {1, 2}}), "column 'n' must be an array or a sequence"),
        (lambda data: DataProto.concat([data, batch_of_shape(4, 2)]), "column 'a': "),
    ],
)
def test_what_would_lose_rows_is_refused(operation, message):
    with pytest.raises(AssertionError, match=message):
        operation(batch(4, tensors="a"))


def batch_of_shape(*shape):
    return DataProto.from_dict({"a": torch.zeros(shape)})


def test_small_integers_choose_rows_by_number():
    data = batch(4, tensors="a", others=["n"])[torch.tensor([3, 1, 1], dtype=torch.uint8)]
    assert data.batch["a"].tolist() == data.non_tensor_batch["n"].tolist() == [3, 1, 1]


def test_columns_of_a_tensordict_that_are_tensordicts_keep_their_rows():
    nested = TensorDict({"x": TensorDict({"y": torch.arange(4)}, batch_size=[4])}, batch_size=[4])
    data = travel(DataProto.from_tensordict(nested))[1:3]
    assert (data.batch["x"]["y"].tolist(), data.meta_info, data.nbytes) == ([1, 2], {}, 16)
