"""Which calls of callers that have ended still run."""

import pytest

from workergroups.ray_private.cluster_state import caller_of
from workergroups.stacks.orphaned_calls import RunningCall, is_orphaned, orphaned, returned
from workergroups.stacks.rank_stack import Doing, RankStack


def call(key, seconds, state="running"):
    return RunningCall(key, "rank", seconds, state)


OLD, NEW = call("old", 60.0, orphaned("running")), call("new", 5.0, orphaned("running, in ray.get"))
LIVE = call("live", 30.0)


@pytest.mark.parametrize(
    ("calls", "stack", "gone"),
    [
        ([OLD], RankStack(Doing.METHOD, methods=1), set()),
        ([OLD], RankStack(Doing.NOTHING), {"old"}),
        ([OLD, NEW], RankStack(Doing.METHOD, methods=1), {"old"}),
        ([OLD, NEW], RankStack(Doing.METHOD, methods=2), set()),
        ([OLD, LIVE], RankStack(Doing.METHOD, methods=1), {"old"}),
        ([NEW, LIVE], RankStack(Doing.METHOD, methods=1), {"new"}),
        ([OLD, NEW, LIVE], RankStack(Doing.METHOD, methods=2), {"old"}),
        ([LIVE], RankStack(Doing.NOTHING), set()),
        ([OLD], RankStack(Doing.ASYNC), set()),
        ([OLD], RankStack(Doing.UNKNOWN, note="frozen"), set()),
    ],
)
def test_as_many_calls_run_as_there_are_threads_in_methods(calls, stack, gone):
    assert returned(calls, {"rank": stack}) == gone


def test_of_a_process_that_nobody_has_asked_nothing_is_known():
    assert returned([OLD, NEW], {"another": RankStack(Doing.NOTHING)}) == set()


def test_a_state_says_that_the_caller_has_ended():
    assert orphaned("queued") == "queued, its caller has ended"
    assert is_orphaned(orphaned("queued"))
    assert not is_orphaned("queued")


DRIVER, TASK, ACTOR = "ff" * 20, "0123456789abcdef" + "ff" * 12, "0123456789abcdef" + "ab" * 12


@pytest.mark.parametrize(
    ("parent", "actor_id", "job_id"),
    [
        (DRIVER + "02000000", "", "02000000"),
        (TASK + "02000000", "", "02000000"),
        (ACTOR + "02000000", "ab" * 12 + "02000000", "02000000"),
        ("ff" * 24, "", ""),
    ],
)
def test_the_id_of_a_task_tells_its_actor_and_its_job(parent, actor_id, job_id):
    assert caller_of(bytes.fromhex(parent)) == (actor_id, job_id)
