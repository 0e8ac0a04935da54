"""Exceptions of every kind, of methods and constructors, arrive with the rank and the user's text."""

from __future__ import annotations

import os
import sys
from types import SimpleNamespace

import pytest
from ray.exceptions import RayTaskError

from tests.unit.library.test_told_errors import Cuda, Locked, Surrogates, TwoArguments, Unpicklable
from workergroups import (
    Dispatch,
    RankDiedError,
    RankRaisedError,
    RayClassWithInitArgs,
    RayWorkerGroup,
    register,
)

pytestmark = pytest.mark.usefixtures("local_ray")


def make(kind):
    errors = [
        KeyError("the text"),
        TwoArguments("the text", 2),
        Locked("the text"),
        Unpicklable("the text"),
        ExceptionGroup("the text", [ValueError("inner")]),
        Surrogates("the text of caf\udce9.txt"),
    ]
    return next(error for error in errors if type(error).__name__ == kind)


KINDS = ["KeyError", "TwoArguments", "Locked", "Unpicklable", "ExceptionGroup"]


class Raising:
    def __init__(self, kind=None):
        if kind and os.environ["RANK"] == "1":
            raise make(kind)

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def step(self, kind):
        return self.evaluate(kind)

    def evaluate(self, kind):
        if os.environ["RANK"] == "1":
            raise make(kind)
        return kind


@pytest.fixture(scope="module")
def group(pool):
    with RayWorkerGroup(pool, RayClassWithInitArgs(Raising), name_prefix="raising") as group:
        yield group


@pytest.mark.parametrize("kind", [*KINDS, "Surrogates"])
def test_a_methods_exception_names_the_rank_which_lives_on(group, kind):
    for call in (group.step, lambda kind: group.execute_all_sync("evaluate", kind)):
        with pytest.raises(RankRaisedError, match="the text") as failure:
            call(kind)
        assert (failure.value.rank, failure.value.group) == (1, "raising")
        assert str(failure.value).startswith("rank 1 of 2 of group 'raising'")
        assert kind in str(failure.value)
        assert isinstance(failure.value, RayTaskError)
    if kind == "KeyError":
        assert isinstance(failure.value, KeyError)


@pytest.mark.parametrize("kind", KINDS)
def test_a_constructors_exception_is_a_rank_that_died(pool, kind):
    with RayWorkerGroup(pool, RayClassWithInitArgs(Raising, kind)) as group:
        with pytest.raises(RankDiedError, match=r"rank 1 of 2 .*failed in its constructor") as failure:
            group.step("none")
        assert (failure.value.rank, failure.value.reason) == (1, "ConstructorFailed")
        assert "the text" in str(failure.value)
        assert kind in str(failure.value)


class Lost:
    """Its device is lost by an error on rank 1, as after an illegal memory access."""

    def step(self):
        if os.environ["RANK"] == "1":
            sys.modules["torch"] = SimpleNamespace(cuda=Cuda(broken=True))
            raise RuntimeError("CUDA error: an illegal memory access was encountered")

    def ask(self):
        return os.environ["RANK"]


def ask_without_end(group):
    while True:
        group.execute_all_sync("ask")


def test_an_error_that_ends_the_context_of_a_device_ends_the_rank(pool):
    with RayWorkerGroup(pool, RayClassWithInitArgs(Lost)) as group:
        assert group.execute_all_sync("ask") == ["0", "1"]
        with pytest.raises(RankRaisedError, match=r"this rank ends, since cuda:0 is lost for this process: CUDA error"):
            group.execute_all_sync("step")
        with pytest.raises(RankDiedError, match=r"ended itself, since cuda:0 is lost for this process") as failure:
            ask_without_end(group)
        assert (failure.value.rank, failure.value.reason) == (1, "ProcessDied")
