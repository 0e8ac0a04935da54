"""What a person at a terminal sees of a long wait, and that logs stay quiet."""

from __future__ import annotations

import contextlib
import io
import threading
import time

import pytest

from workergroups import (
    PlacementImpossibleError,
    PlacementTimeoutError,
    RayClassWithInitArgs,
    RayResourcePool,
    RayWorkerGroup,
    Worker,
)
from workergroups.single_controller.ray import progress

pytestmark = pytest.mark.usefixtures("local_ray")

CLEAR = "\r\x1b[K"


class Sleeper(Worker):
    def __init__(self, seconds=0):
        super().__init__()
        time.sleep(seconds * self.rank)

    def rest(self, seconds):
        time.sleep(seconds)


class Screen(io.StringIO):
    def __init__(self, is_terminal):
        super().__init__()
        self.isatty = lambda: is_terminal


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(progress, "_QUIET_FOR", 0.2)
    monkeypatch.setattr(progress, "_REFRESH", 0.2)
    monkeypatch.setattr(progress, "_MINUTE", 0.2)


def test_a_call_says_how_many_ranks_are_up_and_how_many_have_returned(local_ray):
    screen = Screen(is_terminal=True)
    with (
        contextlib.redirect_stderr(screen),
        RayResourcePool([2], use_gpu=False, max_colocate_count=1) as pool,
        RayWorkerGroup(pool, RayClassWithInitArgs(Sleeper, seconds=4)) as group,
    ):
        group.execute_rank_zero_sync("rest", 0)
        group.execute_all_sync("rest", [0, 6])
    lines = screen.getvalue().split(CLEAR)
    assert any(line.startswith("rest: 1 of 2 ranks are up (") for line in lines)
    assert any(line.startswith("rest: 1 of 2 ranks have returned; not yet: 1 (") for line in lines)
    assert lines[-1] == "", "the line must be gone in the end"


def test_a_pool_says_how_much_of_it_is_placed(local_ray):
    screen = Screen(is_terminal=True)
    with (
        contextlib.redirect_stderr(screen),
        RayResourcePool([20], use_gpu=False, max_colocate_count=2) as other,
        RayResourcePool([20, 20], use_gpu=False, max_colocate_count=2, timeout=8) as pool,
    ):
        other.get_placement_groups()
        with pytest.raises(PlacementTimeoutError):
            pool.get_placement_groups()
    assert "1 of 2 placement groups of 20 bundles are placed (" in screen.getvalue()


def test_a_pool_that_can_never_be_placed_is_not_waited_for(local_ray):
    began = time.monotonic()
    with pytest.raises(PlacementImpossibleError, match="GPU: 9 required on one node, the best node has 8 free of 8"):
        RayResourcePool([9], max_colocate_count=1).get_placement_groups()
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("is_own", [True, False], ids=["a notebook", "a job"])
def test_a_notebook_gets_a_line_each_minute_and_the_logs_of_jobs_stay_quiet(local_ray, monkeypatch, is_own):
    monkeypatch.setattr(progress, "has_started_ray", lambda: is_own)
    screen = Screen(is_terminal=False)
    with (
        contextlib.redirect_stderr(screen),
        RayResourcePool([2], use_gpu=False, max_colocate_count=1) as pool,
        RayWorkerGroup(pool, RayClassWithInitArgs(Sleeper)) as group,
    ):
        group.execute_all_sync("rest", [0, 4])
    lines = screen.getvalue().splitlines()
    assert any(line.startswith("rest: 1 of 2 ranks have returned; not yet: 1 (") for line in lines) == is_own
    assert is_own or not lines


def test_a_pool_for_which_the_program_itself_has_no_room_is_refused_at_once(local_ray):
    first, second = (RayResourcePool([2], max_colocate_count=4) for _ in range(2))
    with RayResourcePool([5], max_colocate_count=1) as other, first, second:
        first.get_placement_groups()
        other.get_placement_groups()
        began = time.monotonic()
        with pytest.raises(PlacementImpossibleError) as refused:
            second.get_placement_groups()
        assert time.monotonic() - began < 5
        said = str(refused.value)
        assert f"the pool of 2 made at {__file__}:" in said
        assert "GPU: 2 required on one node, the best node has 1 free of 8" in said
        assert "give the pool a timeout" in said
        other.close()
        second.get_placement_groups()


def test_a_pool_that_was_given_a_timeout_waits_for_the_programs_other_pools(local_ray):
    with RayResourcePool([8], max_colocate_count=1) as first:
        first.get_placement_groups()
        threading.Timer(1, first.close).start()
        with RayResourcePool([8], max_colocate_count=1, timeout=60) as second:
            assert second.get_placement_groups()
