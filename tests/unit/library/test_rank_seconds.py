"""What a rank is in is told by its threads' stacks."""

import gc
import threading

import pytest

from workergroups.ray_private import process
from workergroups.single_controller.ray import rank_seconds
from workergroups.single_controller.ray.rank_seconds import Frame, activity

RAY, OURS = process.FOLDER, rank_seconds._OURS
LOOP = [Frame("default_worker.py", "<module>"), Frame(f"{RAY}_private/worker.py", "main_loop")]
CALL = [*LOOP, Frame(f"{RAY}_private/function_manager.py", "actor_method_executor")]
PLAIN = [*CALL, Frame(f"{RAY}util/tracing/tracing_helper.py", "_resume_span"), Frame("/code/model.py", "step")]
WRAPPER = Frame(f"{OURS}single_controller/base/decorator.py", "update", True)
FETCH = Frame(f"{OURS}transfers/fetching.py", "fetch")
HELPER = [Frame("threading.py", "_bootstrap"), Frame("/code/loader.py", "prefetch"), FETCH]


@pytest.mark.parametrize(
    ("stacks", "expected"),
    [
        ([LOOP], ("Idle", "")),
        ([LOOP, HELPER], ("Idle", "")),
        ([PLAIN], ("Running", "step")),
        ([[*PLAIN, Frame("/code/model.py", "forward")], HELPER], ("Running", "step")),
        ([LOOP, PLAIN], ("Running", "step")),  # with max_concurrency, another thread runs the methods
        ([[*CALL, WRAPPER, Frame("/code/model.py", "anything")]], ("Running", "update")),
        ([[*CALL, WRAPPER, Frame(f"{OURS}single_controller/base/dispatch.py", "materialize")]], ("Running", "update")),
        ([[*CALL, WRAPPER, Frame(f"{RAY}_private/worker.py", "get")]], ("Waiting", "update")),
        ([[*PLAIN, FETCH, Frame(f"{OURS}transfers/memory.py", "settle")]], ("Waiting", "step")),
        ([[*PLAIN, Frame("/x/torch/distributed/distributed_c10d.py", "all_reduce")]], ("Collective", "step")),
        ([[*PLAIN, Frame("/code/cache.py", "get")]], ("Running", "step")),
        ([CALL], ("Running", "others")),
    ],
)
def test_the_innermost_thing_that_waits_decides(stacks, expected):
    assert activity(stacks) == expected


def test_a_look_leaves_no_garbage_that_refers_to_what_a_rank_computes_with():
    begun, ended = threading.Event(), threading.Event()

    def actor_method_executor():
        begun.set()
        ended.wait()

    rank = threading.Thread(target=actor_method_executor)
    rank.start()
    begun.wait()
    gc.collect()
    gc.disable()
    try:
        looks = {activity(rank_seconds._stacks()) for _ in range(20)}
        assert (looks, gc.collect()) == ({("Running", "wait")}, 0)
    finally:
        gc.enable()
        ended.set()
        rank.join()


def test_a_rank_has_a_limited_number_of_series(monkeypatch):
    monkeypatch.setattr(rank_seconds, "_MOST_METHODS", 2)
    booked = {}

    class Counter:
        def __init__(self, *args, **kwargs):
            pass

        def set_default_tags(self, tags):
            pass

        def inc(self, value, tags):
            booked[tags["method"]] = booked.get(tags["method"], 0) + value

    monkeypatch.setattr(rank_seconds, "Counter", Counter)
    seen = iter([("Idle", ""), *(("Running", f"method{at}") for at in range(9))])
    monkeypatch.setattr(rank_seconds, "activity", lambda stacks: next(seen))
    clock = iter(range(10))
    monkeypatch.setattr(rank_seconds.time, "monotonic", lambda: next(clock))
    seconds = rank_seconds.RankSeconds({"group": "policy"})
    for _ in range(9):
        seconds.look()
    assert booked == {"": 0.5, "method0": 1.0, "others": 7.5}
