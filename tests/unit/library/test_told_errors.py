"""What a rank tells of an exception: one that can be sent, and the rank's devices."""

from __future__ import annotations

import pickle
import threading
from types import SimpleNamespace

import pytest
from ray.exceptions import RayTaskError

from workergroups import RankRaisedError
from workergroups.announcements import told_ends
from workergroups.deaths.rank_exception import UNREADABLE, raised, who_raised
from workergroups.single_controller.ray import told_errors
from workergroups.single_controller.ray.told_errors import devices, lost_context, sendable


class TwoArguments(Exception):
    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


class Locked(Exception):
    def __init__(self, text):
        super().__init__(text)
        self.lock = threading.Lock()


class Unpicklable(Exception):
    def __reduce__(self):
        raise AttributeError("not me")


class Unreadable(Exception):
    def __reduce__(self):
        return "nothing of that name"


class Surrogates(Exception):
    """Its text has half of a surrogate pair, as that of a name that is not UTF-8 has."""


class Silent(Exception):
    def __reduce__(self):
        raise AttributeError("not me")

    def __str__(self):
        raise ValueError("no text")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (TwoArguments(1, 2), "TwoArguments: 1 and 2"),
        (Locked("text"), "Locked: text"),
        (Unpicklable("text"), "Unpicklable: text"),
        (Unreadable("text"), "Unreadable: text"),
        (Silent(), "Silent: <exception str() failed>"),
    ],
)
def test_an_exception_that_cannot_be_sent_is_told_by_its_class_and_text(error, text):
    sent = sendable(error)
    assert type(sent) is RuntimeError
    assert str(sent).endswith(text)
    assert str(pickle.loads(pickle.dumps(sent))) == str(sent)


@pytest.mark.parametrize("error", [KeyError("a"), OSError(2, "no such file"), ValueError()])
def test_other_exceptions_are_sent_as_they_are(error):
    assert sendable(error) is error


class Cuda:
    def __init__(self, broken=False):
        self.broken = broken

    def is_initialized(self):
        return True

    def device_count(self):
        return 1

    def mem_get_info(self, device):
        if self.broken:
            raise RuntimeError("CUDA error: an illegal memory access was encountered\nCompile with TORCH_USE_CUDA_DSA.")
        return 1 << 30, 80 << 30

    def memory_reserved(self, device):
        return 70 << 30

    def get_device_name(self, device):
        return "NVIDIA H100"


@pytest.mark.parametrize(
    ("cuda", "expected"),
    [
        (Cuda(), "cuda:0 (NVIDIA H100): 1.0 of 80.0 GiB are free, and torch holds 70.0 GiB in this process"),
        (Cuda(broken=True), "cuda:0 does not answer: CUDA error: an illegal memory access was encountered"),
    ],
    ids=["out of memory", "context lost"],
)
def test_a_rank_tells_which_devices_it_has_and_who_holds_their_memory(monkeypatch, cuda, expected):
    monkeypatch.setitem(__import__("sys").modules, "torch", SimpleNamespace(cuda=cuda))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    assert devices() == ["CUDA_VISIBLE_DEVICES=3", expected]


@pytest.mark.parametrize(
    ("cuda", "expected"),
    [
        (None, None),
        (SimpleNamespace(is_initialized=lambda: False), None),
        (Cuda(), None),
        (Cuda(broken=True), "cuda:0 is lost for this process: CUDA error: an illegal memory access was encountered"),
    ],
    ids=["no torch", "no device", "well", "lost"],
)
def test_a_context_is_lost_if_its_device_answers_nothing_any_more(monkeypatch, cuda, expected):
    monkeypatch.setitem(__import__("sys").modules, "torch", cuda and SimpleNamespace(cuda=cuda))
    assert lost_context() == expected


def test_a_rank_tells_that_it_ends_before_it_ends(monkeypatch):
    said, ended = [], threading.Event()
    monkeypatch.setattr(told_ends, "tell", lambda actor_id, why: said.append((actor_id, why, ended.is_set())))
    monkeypatch.setattr(told_ends, "leave", lambda _: ended.set())
    monkeypatch.setattr(told_errors, "_SENT", 0.01)
    told_errors.end_soon("a1", "cuda:0 is lost")
    assert said == [("a1", "it ended itself, since cuda:0 is lost", False)]
    assert ended.wait(5)


@pytest.mark.parametrize(
    "cause", [KeyError("a"), ExceptionGroup("several", [KeyError("a")]), OSError(2, "b"), SystemError("c")]
)
def test_a_drivers_error_has_the_rank_and_is_still_one_of_the_exceptions_class(cause):
    text = f"{who_raised(1, 2, 'actor')}, CUDA_VISIBLE_DEVICES=3\nTraceback (most recent call last):\nKeyError: 'a'"
    rays = RayTaskError("step", text, cause).as_instanceof_cause()
    error = raised(rays)
    assert error is rays
    assert isinstance(error, RankRaisedError)
    assert isinstance(error, RayTaskError)
    assert isinstance(error, type(cause))
    assert (error.rank, error.group) == (1, "actor")
    assert str(error).startswith("rank 1 of 2 of group 'actor', CUDA_VISIBLE_DEVICES=3\n")
    assert raised(error) is error


def test_an_exception_that_this_process_cannot_load_has_the_rank_as_well():
    rays = UNREADABLE(f"ray.exceptions.RayTaskError: {who_raised(3, 4, 'actor')}\nTraceback\nModelError: no weights")
    error = raised(rays)
    assert isinstance(error, RankRaisedError)
    assert (error.rank, error.group) == (3, "actor")
    assert "no weights" in str(error)


def test_exceptions_of_other_tasks_are_left_alone():
    error = RayTaskError("task", "Traceback\nValueError: seen on rank 1 of 2 of group 'actor'", ValueError("a"))
    assert not isinstance(raised(error), RankRaisedError)
