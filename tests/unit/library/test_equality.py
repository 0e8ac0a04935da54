"""Values that are compared when batches are joined: NaN, arrays and tensors anywhere in them."""

from __future__ import annotations

import copy
import datetime
import decimal
import math
import pickle
from collections import OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tensordict import TensorDict

from workergroups import DataProto
from workergroups.protocol.equality import deep_equal

NAN = float("nan")
Pair = namedtuple("Pair", "one two")


@dataclass
class Row:
    pixels: object = field(default_factory=lambda: np.ones(3))
    score: float = NAN


class Slots:
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


def cycle(value):
    made = [value]
    made.append(made)
    return made


def jagged(*rows):
    return torch.nested.as_nested_tensor([torch.tensor(row) for row in rows], layout=torch.jagged)


# Pairs of values that differ. Each is equal to a copy of itself.
DIFFERENT = [
    (NAN, 1.0),
    (complex(NAN, 1), complex(NAN, 2)),
    (np.float32("nan"), np.float32(1)),
    (np.datetime64("NaT"), np.datetime64("2026-01-01")),
    (decimal.Decimal("NaN"), decimal.Decimal(1)),
    (np.array([1.0, NAN]), np.array([1.0, 2.0])),
    (np.array([1.0]), np.array([1])),
    (np.array([(1, NAN)], dtype="i4,f4"), np.array([(2, NAN)], dtype="i4,f4")),
    (np.array([{"a": np.ones(2)}, NAN], dtype=object), np.array([{"a": np.zeros(2)}, NAN], dtype=object)),
    (np.ma.masked_array([1.0, NAN], [0, 1]), np.ma.masked_array([1.0, NAN], [1, 0])),
    (torch.tensor([1.0, NAN]), torch.tensor([1.0, 2.0])),
    (torch.ones(1), torch.ones(1, dtype=torch.int64)),
    (torch.tensor([NAN]).to(torch.float8_e5m2), torch.ones(1).to(torch.float8_e5m2)),
    (torch.zeros(2, dtype=torch.uint8).view(torch.uint4), torch.ones(2, dtype=torch.uint8).view(torch.uint4)),
    (torch.eye(2).to_sparse(), torch.ones(2, 2).to_sparse()),
    (torch.eye(2).to_sparse(), torch.eye(2)),
    (jagged([1.0, NAN], [2.0]), jagged([1.0, NAN], [3.0])),
    (jagged([1.0, NAN], [2.0]), jagged([1.0], [NAN, 2.0])),
    (TensorDict({"a": torch.tensor([NAN])}, batch_size=[1]), TensorDict({"a": torch.ones(1)}, batch_size=[1])),
    ({"a": np.ones(2)}, {"a": np.ones(3)}),
    ({"a": torch.ones(2)}, {"b": torch.ones(2)}),
    ([1, [2, (NAN, np.ones(2))]], [1, [2, (NAN, np.zeros(2))]]),
    ([np.ones(1)], [np.ones(1, dtype=np.int64)]),
    ([np.ones(2)], [np.ones(2), 1]),
    ({1, NAN}, {2, NAN}),
    (Pair(NAN, np.ones(2)), Pair(NAN, np.zeros(2))),
    (Row(), Row(score=1.0)),
    (Slots(np.ones(2)), Slots(np.zeros(2))),
    (SimpleNamespace(a=torch.ones(2)), SimpleNamespace(a=torch.zeros(2))),
    (deque([np.ones(2)]), deque([np.zeros(2)])),
    (OrderedDict(a=np.ones(2)), OrderedDict(a=np.zeros(2))),
    (defaultdict(list, a=np.ones(2)), defaultdict(list, a=np.zeros(2))),
    (cycle(NAN), cycle(1.0)),
    (datetime.date(2026, 1, 1), datetime.date(2026, 1, 2)),
    (int, str),
    (len, max),
    ("a", "b"),
]


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_values_equal_their_copies_and_nothing_else(one, other):
    for value in (one, other):
        assert deep_equal(value, copy.deepcopy(value))
        assert deep_equal([value], [copy.deepcopy(value)])
    assert not deep_equal(one, other)
    assert not deep_equal({"a": [one]}, {"a": [other]})


def test_functions_are_only_equal_to_themselves():
    assert deep_equal(math.sin, math.sin)
    assert not deep_equal(lambda: 1, lambda: 1)


@pytest.mark.parametrize("kind", ["tensor", "column", "meta_info"])
@pytest.mark.parametrize("value", [NAN, {"pixels": np.ones(2)}, Row(), {"a": torch.ones(2)}], ids=repr)
def test_batches_with_any_values_are_joined_with_what_came_back_from_a_rank(kind, value):
    if kind == "tensor":
        data = DataProto.from_dict({"a": torch.tensor([NAN, 1.0])})
    elif kind == "column":
        data = DataProto.from_dict({"a": torch.ones(2)}, {"rows": [value, value]})
    else:
        data = DataProto.from_dict({"a": torch.ones(2)}, meta_info={"fact": value})
    back = pickle.loads(pickle.dumps(data))
    assert len(DataProto.concat([data, back])) == 4
    assert len(data.union(back)) == 2
