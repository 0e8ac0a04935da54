"""When waiting is over, and when it is in vain."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from tests.unit.client.fake_cluster import SOON, FakeCluster, condition, group, pool
from workergroups_cli.description import _describe, _told
from workergroups_cli.overview import _row
from workergroups_cli.progress import _state
from workergroups_client.objects.names import find
from workergroups_client.objects.readiness import until, why
from workergroups_client.objects.status import status_of

LATER = "9999-01-01T00:00:00Z"
LATE = condition("Progressing", "False", "ProgressDeadlineExceeded")


FAILURE = {"rank": 3, "reason": "OutOfMemory", "message": "killed", "incarnation": 6, "time": "2026-01-01T00:00:00Z"}


def described(*conditions, observed=2, **more):
    status = {"conditions": list(conditions), "observedGeneration": observed, **more}
    return status_of(find(FakeCluster(pool("ppo", status=status)), "ppo"))


@pytest.mark.parametrize(
    ("status", "is_ready", "is_hopeless"),
    [
        (described(), False, False),
        (described(condition("Ready", "True")), True, False),
        (described(condition("Ready", "True"), observed=1), False, False),
        (described(condition("Ready", "False"), deadline=SOON), False, False),
        (described(condition("Ready", "False")), False, True),
        (described(condition("Ready", "False"), observed=1), False, False),
        (described(condition("Ready", "Unknown", "AgentLost")), False, False),
        (described(condition("Ready", "False", "PausedByDebugger")), False, False),
        (described(condition("Ready", "False", "Queued")), False, False),
        (described(condition("Ready", "False", "PoolQueued")), False, False),
        (described(condition("Ready", "False", "DeadlineExceeded"), deadline=SOON), False, False),
        (described(condition("Ready", "False"), LATE, deadline=SOON), False, False),
        (described(condition("Ready", "False"), condition("Progressing", "False")), False, True),
    ],
)
def test_it_is_ready_or_waits_or_cannot_become_ready(status, is_ready, is_hopeless):
    assert (status.is_ready, status.is_hopeless) == (is_ready, is_hopeless)


def test_a_group_whose_run_is_complete_is_ready_and_told_to_be_complete():
    complete = described(condition("Ready", "True", "Complete", "train has returned on all ranks"))
    assert (complete.is_ready, complete.is_complete, complete.is_hopeless) == (True, True, False)
    assert _state(complete, why) == "complete"
    assert "Complete: train has returned on all ranks" in _row(complete)
    ready = described(condition("Ready", "True", "RanksReady"))
    assert (ready.is_complete, _state(ready, why)) == (False, "ready")
    late = described(condition("Ready", "False", "DeadlineExceeded", "too late"))
    assert (late.is_hopeless, _state(late, why)) == (True, "DeadlineExceeded: too late")


def test_the_conditions_are_in_the_order_in_which_they_become_true_and_new_ones_last():
    kinds = ["UpToDate", "New", "Progressing", "Ready", "BundlesReserved", "ClusterReady", "NodesReady"]
    chain = [each.type for each in described(*(condition(kind, "True") for kind in kinds)).conditions]
    assert chain == ["ClusterReady", "NodesReady", "BundlesReserved", "Ready", "Progressing", "UpToDate", "New"]


def test_the_reason_for_waiting_is_the_conditions_own_sentence():
    assert why(described(condition("Ready", "False", "HeadStarting", "waiting for the head"))) == (
        "HeadStarting: waiting for the head"
    )
    assert why(described(observed=1)) == "the operator has not seen it yet"


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (described(condition("Ready", "True")), ""),
        (described(condition("Ready", "False"), condition("Progressing", "True"), deadline=LATER), "h left"),
        (described(condition("Ready", "False"), LATE, deadline=SOON), "ProgressDeadlineExceeded: the operator keeps"),
        (described(LATE, deadline=SOON, observed=1), "its deadline has passed"),
        (described(condition("Ready", "False", "DeadlineExceeded"), deadline=SOON), "its deadline has passed"),
    ],
)
def test_the_time_that_is_left_is_told(status, said):
    assert said in until(status)
    assert bool(said) == bool(until(status))


def test_the_failures_that_the_status_keeps_are_told_and_how_often_the_group_was_restarted():
    status = {"incarnation": 7, "restarts": {"count": 2}, "failures": [FAILURE]}
    found = status_of(find(FakeCluster(group("ppo", status=status)), "ppo"))
    assert [failure.to_json() for failure in found.failures] == [FAILURE]
    assert found.restarts == 2
    never = status_of(find(FakeCluster(group("ppo", status={"incarnation": 7})), "ppo"))
    assert (never.failures, never.restarts) == ((), 0)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({}, "incarnation 6, rank 3, "),
        ({"pod": "p", "node": "gpu-7"}, "rank 3 in pod p on node gpu-7, "),
        ({"lastWords": "the end"}, "OutOfMemory: killed; last words: the end"),
    ],
)
def test_a_failure_is_told_in_one_line(more, words):
    status = {"incarnation": 7, "failures": [FAILURE | more]}
    (failure,) = status_of(find(FakeCluster(group("ppo", status=status)), "ppo")).failures
    assert words in _told(failure)


def test_a_message_is_printed_once_also_within_others(capsys):
    cause = "rank 3 in pod ppo-worker-a: its process was killed; 0 of 4 ranks ready"
    conditions = [
        condition("NodesReady", "False", "ProcessDied", cause),
        condition("Ready", "False", "ProcessDied", cause),
        condition("Progressing", "False", "ProcessDied", f"waiting cannot make it ready; ProcessDied: {cause}"),
    ]
    _describe(described(*conditions))
    printed = capsys.readouterr().out
    assert printed.count(cause) == 1
    assert "ProcessDied: see NodesReady\n" in printed
    assert "waiting cannot make it ready; ProcessDied: see NodesReady" in printed


def test_nodes_that_are_not_reserved_are_reported():
    waiting = {"index": 1, "state": "Waiting", "message": "no such pod"}
    assert [node.to_json() for node in described(reservation={"nodes": [waiting]}).unreserved] == [waiting]


def test_a_time_has_its_two_largest_units():
    soon = datetime.now(UTC) + timedelta(minutes=6, seconds=59)
    assert re.fullmatch(r"6m5\ds left", until(described(condition("Ready", "False"), deadline=soon.isoformat())))
