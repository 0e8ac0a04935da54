"""Memory of large batches is used again, and never while somebody can see it."""

from __future__ import annotations

import pytest
import torch

from workergroups.protocol import buffers
from workergroups.protocol.buffers import Buffers

SIZE = 32 * 2**20


@pytest.fixture
def memory():
    return Buffers()


def test_what_was_given_up_is_taken_again(memory):
    first = memory.take(SIZE)
    first[:] = 7
    del first
    assert (memory.take(SIZE - 100) == 7).all()


@pytest.mark.parametrize(
    "look",
    [
        lambda array: array[10:20],
        lambda array: array.view("int8")[5:],
        torch.from_numpy,
        lambda array: torch.from_numpy(array).view(torch.float32)[3:],
        lambda array: torch.from_numpy(array)[7:].numpy()[1:],
        memoryview,
    ],
    ids=["slice", "view", "tensor", "part of a tensor", "array of a tensor", "memoryview"],
)
def test_whoever_sees_part_of_it_keeps_all_of_it(memory, look):
    array = memory.take(SIZE)
    array[:] = 7
    seen = look(array)
    del array
    memory.take(SIZE)[:] = 8
    assert int(seen[0]) == int(seen[-1])
    assert bytes(memoryview(seen.numpy() if isinstance(seen, torch.Tensor) else seen).cast("B"))[:1] == b"\x07"


def test_what_is_much_too_large_is_not_taken(memory):
    large = memory.take(2 * SIZE)
    large[:] = 7
    del large
    assert not memory.take(SIZE).any()  # new memory, which the kernel has cleared


def test_what_nobody_takes_again_goes_back_to_the_kernel(memory, monkeypatch):
    memory.take(SIZE)
    memory.expire()
    assert len(memory._free) == 1
    monkeypatch.setattr(buffers, "_KEPT_FOR", 0.0)
    memory.expire()
    assert memory._free == []
