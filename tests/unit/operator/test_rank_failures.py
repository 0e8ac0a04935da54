"""Which ranks have failed and why, when they are recreated, and what a report says of those recreated alone."""

from datetime import timedelta

import pytest

from tests.unit.operator.make import EVICTED, NOW, pod, workers
from workergroups_api.failure_policy import FailurePolicy, KeptFailure, RestartHistory
from workergroups_api.plan import MAX_BIRTHS
from workergroups_api.report import GroupReport, RankFailure
from workergroups_operator.policy.rank_failures import (
    GroupFailure,
    births_after,
    failure_response,
    group_failure,
    present_report,
    restarted,
)


def ago(*seconds):
    return tuple(NOW - timedelta(seconds=each) for each in seconds)


@pytest.mark.parametrize(
    ("policy", "recent", "reasons", "pause", "counts"),
    [
        ({}, (), {"ProcessDied"}, 0, True),
        ({}, ago(100), {"ProcessDied"}, 10, True),
        ({}, ago(200, 100), {"ConstructorFailed"}, 20, True),
        ({}, ago(300, 200, 100), {"ProcessDied"}, None, True),
        # A restart counts within the window only.
        ({}, ago(600, 200, 100), {"ProcessDied"}, 20, True),
        ({"windowSeconds": 150}, ago(300, 200, 100), {"ProcessDied"}, 10, True),
        ({"maxRestarts": 4}, ago(300, 200, 100), {"ProcessDied"}, 40, True),
        ({"maxRestarts": 100}, ago(*range(90)), {"ProcessDied"}, 300, True),
        ({"maxRestarts": 0}, (), {"ProcessDied"}, None, True),
        ({"backoffSeconds": 0}, ago(200, 100), {"ProcessDied"}, 0, True),
        ({"backoffSeconds": 3600}, ago(200, 100), {"ProcessDied"}, 3600, True),
        # What the user does not count needs no budget.
        ({}, ago(300, 200, 100), {"NodeLost"}, 0, False),
        ({}, ago(300, 200, 100), {"NodeLost", "ProcessDied"}, 0, False),
        ({}, (), {"Preempted"}, 0, False),
        ({"unlimitedFor": []}, (), {"NodeLost"}, 0, True),
        ({"unlimitedFor": []}, ago(300, 200, 100), {"NodeLost"}, None, True),
        # But a group that fails without end does not keep the cluster busy.
        ({"unlimitedFor": ["ConstructorFailed"]}, (), {"ConstructorFailed"}, 10, False),
        ({"restart": "Never"}, (), {"ProcessDied"}, None, True),
        ({"restart": "Never"}, (), {"NodeLost"}, None, False),
        # A reason of a newer agent counts.
        ({}, (), {"AReasonOfTheFuture"}, 0, True),
    ],
)
def test_the_policy_decides_when_ranks_are_restarted(policy, recent, reasons, pause, counts):
    ranks = tuple(RankFailure(rank=rank, reason=reason, message="") for rank, reason in enumerate(sorted(reasons)))
    failure, history = GroupFailure(3, ranks), RestartHistory(recent=recent)
    found = failure_response(failure, FailurePolicy.model_validate(policy), history, NOW)
    at = None if pause is None else NOW + timedelta(seconds=pause)
    assert (found.restart_at, found.counts) == (at, counts)


def test_the_history_keeps_no_more_than_the_policy_looks_at():
    policy = FailurePolicy(max_restarts=2)
    history = RestartHistory(count=7, recent=ago(900, 300, 200), failed_at=NOW)
    assert restarted(history, policy, NOW, counts=True) == RestartHistory(count=8, recent=(*ago(200), NOW))
    assert restarted(history, policy, NOW, counts=False) == RestartHistory(count=8, recent=ago(300, 200))


def died(reason="ProcessDied", name="p-0"):
    return GroupReport.model_validate(
        {"incarnation": 3, "failures": [{"rank": 1, "reason": reason, "message": "Ray's", "pod": name}]}
    )


def ended(reason, key="lastState"):
    return {"containerStatuses": [{"name": "ray-worker", key: {"terminated": {"reason": reason}}}]}


@pytest.mark.parametrize(
    ("reason", "pods", "expected"),
    [
        ("ProcessDied", workers("p-0"), "ProcessDied"),
        ("ProcessDied", (pod("worker", "p-0", **EVICTED),), "Preempted"),
        ("NodeLost", (pod("worker", "p-0", **EVICTED),), "Preempted"),
        ("ProcessExited", (), "NodeLost"),
        ("NodeLost", (pod("worker", "p-0", **ended("OOMKilled")),), "OutOfMemory"),
        ("NodeLost", (pod("worker", "p-0", **ended("OOMKilled", "state")),), "OutOfMemory"),
        ("NodeLost", (pod("worker", "p-0", **ended("Error")),), "NodeLost"),
        # The container ended for memory some time ago, and this rank did not end with it.
        ("ProcessDied", (pod("worker", "p-0", **ended("OOMKilled")),), "ProcessDied"),
        # The code's own failure stays that, even if the pod goes afterwards.
        ("ConstructorFailed", (pod("worker", "p-0", **EVICTED),), "ConstructorFailed"),
        ("OutOfMemory", (), "OutOfMemory"),
    ],
)
def test_of_a_rank_that_ended_with_its_pod_kubernetes_knows_why(reason, pods, expected):
    assert group_failure(died(reason), pods).reasons == {expected}


def test_a_pod_that_is_being_deleted_counts_as_lost():
    (leaving,) = workers("p-0")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T12:00:00Z"
    assert group_failure(died(), (leaving,)).reasons == {"NodeLost"}


def known(reason, seconds):
    return KeptFailure(
        incarnation=3, rank=1, reason=reason, message="known", pod="p-0", time=NOW - timedelta(seconds=seconds)
    )


def evicted(seconds):
    (condition,) = EVICTED["conditions"]
    since = (NOW - timedelta(seconds=seconds)).isoformat()
    return pod("worker", "p-0", conditions=[condition | {"lastTransitionTime": since}])


def deleted(seconds):
    (leaving,) = workers("p-0")
    end = NOW - timedelta(seconds=seconds) + timedelta(seconds=30)
    leaving["metadata"] |= {"deletionTimestamp": end.isoformat(), "deletionGracePeriodSeconds": 30}
    return leaving


@pytest.mark.parametrize(
    ("kept", "pods", "expected"),
    [
        # What a rank died of before its pod began to leave.
        (known("ProcessDied", 10), (evicted(1),), "ProcessDied"),
        (known("ProcessDied", 10), (deleted(1),), "ProcessDied"),
        (known("ProcessDied", 10), (), "ProcessDied"),
        # Kubernetes tells of the end of a pod after Ray told of that of the rank.
        (known("ProcessDied", 1), (evicted(2),), "Preempted"),
        (known("ProcessDied", 1), (deleted(2),), "NodeLost"),
        # What was known of the pod stays true when it is gone, and if the clocks of two machines differ.
        (known("Preempted", 10), (), "Preempted"),
        (known("Preempted", 10), (evicted(1),), "Preempted"),
        (None, (evicted(1),), "Preempted"),
        (None, (), "NodeLost"),
    ],
)
def test_the_end_of_a_pod_is_no_reason_for_an_earlier_death(kept, pods, expected):
    found = group_failure(died(), pods, kept=(kept,) if kept else ())
    assert found.reasons == {expected}


def test_the_status_keeps_the_kubernetes_node_of_a_failed_rank():
    (worker,) = workers("p-0")
    worker["spec"]["nodeName"] = "gpu-7"
    assert group_failure(died(), (worker,)).nodes == {"p-0": "gpu-7"}


@pytest.mark.parametrize(
    ("births", "failed", "number", "expected"),
    [
        ({}, {1}, 1, {1: 1}),
        ({1: 1}, {1}, 2, {1: 2}),
        ({1: 1}, {0}, 2, {0: 2, 1: 1}),
        ({0: 1, 1: 2}, {0, 2}, 3, {0: 3, 1: 2, 2: 3}),
        # No rank would keep its memory, or nobody knows which ranks failed.
        ({}, {0, 1, 2, 3}, 1, None),
        ({}, set(), 1, None),
    ],
)
def test_the_failed_ranks_of_four_get_the_number_of_the_restart(births, failed, number, expected):
    assert births_after(births, failed, 4, number) == expected


def test_a_rank_that_is_alone_is_all_of_the_group():
    assert births_after({}, {0}, 1, 1) is None


def test_the_births_of_the_latest_restarts_are_remembered():
    births = {rank: 1 + rank for rank in range(MAX_BIRTHS)}
    found = births_after(births, {1000, 1001}, 2000, 500)
    assert len(found) == MAX_BIRTHS
    assert births.items() - found.items() == {(0, 1), (1, 2)}
    assert births_after({}, range(MAX_BIRTHS), 2000, 1) == dict.fromkeys(range(MAX_BIRTHS), 1)
    assert births_after({}, range(MAX_BIRTHS + 1), 2000, 1) is None


FAILED = {"rank": 1, "reason": "ProcessDied", "message": "killed"}
PAUSE = {"rank": 1, "where": "train.py:12", "since": "2026-01-01T00:00:00Z"}
HANG = {"method": "step", "since": "2026-01-01T00:00:00Z", "ranks": "1-2", "message": "hangs"}


def report(**more):
    ready = {"incarnation": 1, "state": "Launched", "created": 4, "readyCount": 4, "ready": "0-3"}
    return GroupReport.model_validate(ready | more)


DEAD = report(readyCount=3, ready="0,2-3", failed="1", failures=[FAILED])


@pytest.mark.parametrize("births", [{}, {1: 1}, {1: 1, 3: 1}])
def test_a_report_that_knows_all_births_counts_as_it_is(births):
    known = DEAD.model_copy(update={"birth": 1})
    assert present_report(known, births) == known


def test_a_late_report_says_nothing_of_a_rank_that_was_recreated_since():
    found = present_report(DEAD, {1: 1})
    assert (found.state, found.created, found.ready_count, found.ready) == ("Launching", 3, 3, "0,2-3")
    assert (found.failed, found.failures) == ("", ())


def test_a_late_report_still_counts_for_the_others():
    both = report(readyCount=2, ready="2-3", failed="0-1", failures=[{**FAILED, "rank": 0}, FAILED])
    found = present_report(both, {1: 1})
    assert (found.created, found.ready, found.failed) == (3, "2-3", "0")
    assert [each.rank for each in found.failures] == [0]


def test_a_rank_that_is_ended_since_it_hangs_is_not_ready():
    found = present_report(report(hang=HANG, paused="1,3", pauses=[PAUSE]), {1: 1, 2: 1})
    assert (found.created, found.ready, found.paused, found.pauses, found.hang) == (2, "0,3", "3", (), None)


@pytest.mark.parametrize(
    ("births", "birth", "counts"),
    [
        ({}, None, True),
        ({1: 1}, None, True),
        ({1: 1, 2: 1}, None, False),
        ({1: 1, 2: 1}, 1, True),
        ({1: 1, 2: 2}, 1, True),
        ({1: 3, 2: 2}, 1, False),
        ({3: 4}, None, True),
    ],
)
def test_a_hang_counts_until_all_of_its_ranks_are_recreated(births, birth, counts):
    """The agent may see the new plan before it looks at calls again."""
    found = present_report(report(birth=9, hang={**HANG, "birth": birth}), births)
    assert (found.hang is not None) == counts


def test_a_report_that_names_more_ranks_than_there_can_be_costs_no_more_than_one_that_does_not():
    endless = report(failed="0-99999," * 100_000, ready="0-99999", readyCount=4, failures=[FAILED])
    assert len(group_failure(endless, ()).numbers) == MAX_BIRTHS + 1
    known = present_report(endless, {1: 1}, 4)
    assert (known.ready, known.ready_count, known.failed) == ("0,2-3", 3, "0,2-3")
