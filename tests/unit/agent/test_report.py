"""What the executor reports, from the plan and Ray's state."""

import pytest
from ray_world import group, placement, plan, pool, rank, state

from workergroups.last_line import last_line
from workergroups_agent.executor.ray_state import Death, brief
from workergroups_agent.executor.report import Trouble, report
from workergroups_api.report import ranges

TWO_NODES = pool(nodes=(2, 2))


def pool_report(*placements):
    return report(plan(TWO_NODES), state(*placements), {}).pools["p"]["report"]


def group_report(*ranks, trouble=None, reserved=True):
    placements = (placement(index=0, node="n-b"), placement(index=1, node="n-c")) if reserved else ()
    troubles = {("uid-g", 1): trouble} if trouble else {}
    return report(plan(TWO_NODES, group()), state(*placements, ranks=ranks), troubles).groups["g"]["report"]


def test_a_pool_says_which_pod_holds_which_entry():
    said = pool_report(placement(index=0, node="n-b"))
    assert (said["reservedBundles"], said["totalBundles"], said["observedGeneration"]) == (2, 4, 3)
    assert said["joinedNodes"] == 2
    assert said["nodes"] == [
        {"index": 0, "state": "Reserved", "pod": "p-worker-b"},
        {"index": 1, "state": "Waiting"},
    ]


@pytest.mark.parametrize(
    ("scheduling_state", "words"),
    [("INFEASIBLE", "fewer resources than its bundles need"), ("NO_RESOURCES", "others hold the Ray node's resources")],
)
def test_a_reservation_that_fails_says_why(scheduling_state, words):
    said = pool_report(placement(index=0, node="n-b", state="PENDING", scheduling_state=scheduling_state))
    assert words in said["message"]
    assert said["reservedBundles"] == 0


@pytest.mark.parametrize(
    ("ranks", "more", "expected"),
    [
        ((), {"reserved": False}, ("WaitingForPools", 0, 0)),
        ((), {}, ("Launching", 0, 0)),
        ((rank(0), rank(1, state="PENDING_CREATION")), {}, ("Launching", 2, 1)),
        ((), {"trouble": Trouble("WaitingForCode", "no ConfigMap")}, ("WaitingForCode", 0, 0)),
        ((), {"trouble": Trouble("LaunchFailed", "ImportError: x")}, ("LaunchFailed", 0, 0)),
        (tuple(rank(number) for number in range(4)), {}, ("Launched", 4, 4)),
    ],
)
def test_a_group_says_how_far_it_is(ranks, more, expected):
    said = group_report(*ranks, **more)
    assert (said["state"], said["created"], said["readyCount"]) == expected


def failures(rank_):
    return group_report(rank(0), rank(1), rank_, rank(3))["failures"]


def test_a_dead_rank_says_why_and_where_it_was():
    died = Death("ProcessDied", "killed by signal 9")
    assert failures(rank(2, state="DEAD", death=died)) == [
        {"rank": 2, "reason": "ProcessDied", "message": "killed by signal 9", "pod": "p-worker-b"}
    ]
    assert group_report(rank(0), rank(1), rank(2, state="DEAD"), rank(3))["ready"] == "0-1,3"


@pytest.mark.parametrize(
    ("reason", "reported"),
    [("ProcessDied", "NodeLost"), ("Removed", "NodeLost"), ("ConstructorFailed", "ConstructorFailed")],
)
def test_a_rank_that_went_with_its_node_says_so(reason, reported):
    (failure,) = failures(rank(2, state="DEAD", death=Death(reason, "words"), node="n-gone"))
    assert (failure["reason"], failure["pod"]) == (reported, "p-worker-gone")


@pytest.mark.parametrize(("numbers", "text"), [([], ""), ([3], "3"), ([0, 1, 2, 5], "0-2,5"), ([7, 6, 1], "1,6-7")])
def test_ranges(numbers, text):
    assert ranges(numbers) == text


@pytest.mark.parametrize(
    ("rays", "ours"),
    [
        (
            "The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail: "
            "Worker unexpectedly exits with a connection error code 2. End of file. Some common causes include: (1)",
            "its process ended without telling Ray: it was killed (SIGKILL, or by the kernel for memory) or crashed",
        ),
        (
            "The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail: "
            "Worker exits unexpectedly. Worker exits with an exit code 3.",
            "Worker exits unexpectedly. Worker exits with an exit code 3.",
        ),
        ("The actor is dead because its node has died.", "The actor is dead because its node has died."),
    ],
)
def test_a_death_is_told_without_what_ray_says_of_every_death(rays, ours):
    assert brief(rays) == ours


def test_of_a_traceback_the_exception_counts():
    assert last_line("Traceback:\n  File x\nValueError: boom\n\n") == "ValueError: boom"
