"""Progressing: an object becomes ready, has become ready, or takes longer than it may; and how its deadline counts."""

from datetime import timedelta
from math import inf

import pytest

from tests.unit.operator.make import (
    CREATED,
    HEAD,
    NOW,
    SESSION,
    group,
    observed,
    pod,
    pool,
    ready_pool,
    status_of,
    statuses,
    workers,
)
from workergroups_api.conditions import Finding, find
from workergroups_operator.observed import AgentHeartbeat
from workergroups_operator.policy.deadline import wait_for_ready
from workergroups_operator.status.progressing import progressing

MINUTE = timedelta(seconds=60)
WAIT = wait_for_ready(None, 60, NOW)
NO_NODES = (pod("head"),)
SILENT = AgentHeartbeat(SESSION, (HEAD, SESSION), is_silent=True)


def ready(status="False", reason="NoMatchingNode", message="no node fits"):
    return Finding(type="Ready", status=status, reason=reason, message=message)


@pytest.mark.parametrize(
    ("of", "wait", "seconds", "status", "reason", "message"),
    [
        (ready("True", "Reserved"), None, 0, "True", "BecameReady", ""),
        (ready("True", "PausedByDebugger"), None, 0, "True", "BecameReady", ""),
        (
            ready(reason="Queued", message="no quota"),
            None,
            0,
            "Unknown",
            "Queued",
            "a queue has not admitted it, and meanwhile there is no deadline",
        ),
        (
            ready(),
            WAIT,
            59.9,
            "True",
            "WaitingForReady",
            "waiting since 2026-01-01T12:00:00Z; the deadline is 2026-01-01T12:01:00Z",
        ),
        (
            ready(),
            WAIT,
            60,
            "False",
            "ProgressDeadlineExceeded",
            "waiting since 2026-01-01T12:00:00Z, for more than 60 s; the operator keeps trying; "
            "NoMatchingNode: no node fits",
        ),
        (
            ready("Unknown", "AgentLost", "nobody knows"),
            WAIT,
            0,
            "True",
            "WaitingForReady",
            "waiting since 2026-01-01T12:00:00Z; the deadline is 2026-01-01T12:01:00Z",
        ),
        (
            ready("Unknown", "AgentLost", "nobody knows"),
            WAIT,
            60,
            "False",
            "ProgressDeadlineExceeded",
            "waiting since 2026-01-01T12:00:00Z, for more than 60 s; the operator keeps trying; "
            "AgentLost: nobody knows",
        ),
        (
            ready(reason="LaunchFailed", message="no module"),
            None,
            0,
            "False",
            "LaunchFailed",
            "waiting cannot make it ready; LaunchFailed: no module",
        ),
        (
            ready(reason="PausedByDebugger"),
            None,
            0,
            "Unknown",
            "PausedByDebugger",
            "a rank waits for a person, and meanwhile there is no deadline",
        ),
    ],
)
def test_what_progressing_is(of, wait, seconds, status, reason, message):
    found = progressing(of, wait, NOW + timedelta(seconds=seconds))
    assert (found.type, found.status, found.reason, found.message) == ("Progressing", status, reason, message)


@pytest.mark.parametrize(
    ("before", "since", "until"),
    [
        (None, NOW, NOW + MINUTE),
        (NOW + 0.5 * MINUTE, NOW - 0.5 * MINUTE, NOW + 0.5 * MINUTE),
        (NOW - MINUTE, NOW - 2 * MINUTE, NOW - MINUTE),
    ],
)
def test_a_wait_continues_or_begins_now_in_whole_seconds(before, since, until):
    wait = wait_for_ready(before, 60, NOW + timedelta(milliseconds=400))
    assert (wait.since, wait.until) == (since, until)


def waiting(status=None, seconds=60, generation=1):
    """A pool without nodes, whose status an earlier reconcile has written."""
    made = pool(progressDeadlineSeconds=seconds, status=status or {})
    return made.model_copy(update={"metadata": made.metadata | {"generation": generation}})


def turn(pool_, seconds=0.0, pods=NO_NODES, **parts):
    """The status after a reconcile at NOW plus these seconds."""
    return status_of(observed(pools=(pool_,), pods=pods, **parts), now=NOW + timedelta(seconds=seconds)).after


def progress(after):
    """Progressing, and how many seconds after NOW its status changed."""
    found = find(after.conditions, "Progressing")
    return found.status, found.reason, (found.last_transition_time - NOW).total_seconds()


def late():
    """A status after the deadline."""
    return turn(waiting(turn(waiting()).to_json()), seconds=60)


def test_a_deadline_that_passes_leaves_ready_as_it_was():
    first = turn(waiting())
    assert progress(first) == ("True", "WaitingForReady", 0)
    assert progress(late()) == ("False", "ProgressDeadlineExceeded", 60)
    assert find(late().conditions, "Ready") == find(first.conditions, "Ready")
    assert find(first.conditions, "Ready").reason == "NodesStarting"


@pytest.mark.parametrize(("first", "seconds"), [(turn(waiting(), 0.4), 59), (late(), 61), (late(), 3600)])
def test_while_nothing_changes_nothing_is_written(first, seconds):
    assert turn(waiting(first.to_json()), seconds) == first


@pytest.mark.parametrize(("seconds", "again"), [(0, 60), (59.5, 0.5), (60, inf), (90, inf)])
def test_the_operator_looks_again_when_the_deadline_passes_and_not_after_it(seconds, again):
    seen = observed(pools=(waiting(turn(waiting()).to_json()),), pods=NO_NODES)
    assert statuses(seen, now=NOW + timedelta(seconds=seconds)).requeue_after == again


def test_a_deadline_goes_on_while_nobody_knows_whether_the_pool_is_ready():
    first = turn(waiting())
    unknown = turn(waiting(first.to_json()), 30, agent=SILENT)
    assert find(unknown.conditions, "Ready").status == "Unknown"
    assert (progress(unknown), unknown.deadline) == (("True", "WaitingForReady", 0), first.deadline)
    passed = turn(waiting(unknown.to_json()), 60, agent=SILENT)
    assert progress(passed) == ("False", "ProgressDeadlineExceeded", 60)
    assert progress(turn(waiting(passed.to_json()), 70)) == progress(passed)


def test_another_spec_begins_another_wait():
    edited = turn(waiting(late().to_json(), seconds=90, generation=2), 70)
    assert progress(edited) == ("True", "WaitingForReady", 70)
    assert edited.deadline == NOW + timedelta(seconds=160)


def test_a_pool_that_is_ready_at_last_has_become_ready_and_may_wait_again():
    became = turn(ready_pool(**late().to_json()), 70, pods=(pod("head"), *workers("p-0", "p-1")))
    assert (progress(became), became.deadline) == (("True", "BecameReady", 70), None)
    lost = turn(waiting(became.to_json()), 90)
    assert progress(lost) == ("True", "WaitingForReady", 70)
    assert lost.deadline == NOW + timedelta(seconds=150)


UNFORGIVING = {"failurePolicy": {"restart": "Never"}, "progressDeadlineSeconds": 60}


def group_turn(status, seconds=0.0, **report):
    ranks = {"ranks": {"session": SESSION, "incarnation": 1, "created": 4, "readyCount": 3} | report}
    seen = observed(pools=(ready_pool(),), groups=(group(status=status | ranks, **UNFORGIVING),))
    return status_of(seen, now=NOW + timedelta(seconds=seconds)).after


def test_a_wait_begins_when_what_waiting_did_not_fix_is_fixed():
    dead = group_turn({}, state="Launched", failures=[{"rank": 1, "reason": "ProcessDied", "message": "exit code 1"}])
    assert (progress(dead), dead.deadline) == (("False", "ProcessDied", 0), None)
    again = group_turn(dead.to_json(), seconds=7200, state="Launched")
    assert progress(again) == ("True", "WaitingForReady", 7200)
    assert again.deadline == NOW + timedelta(seconds=7260)


def test_a_status_of_an_operator_that_had_the_reason_deadline_exceeded_is_read():
    older = {"type": "Ready", "status": "False", "reason": "DeadlineExceeded", "lastTransitionTime": CREATED}
    after = turn(waiting({"conditions": [older], "deadline": "2026-01-01T11:59:30Z", "observedGeneration": 1}))
    assert progress(after) == ("False", "ProgressDeadlineExceeded", 0)
    ready_now = find(after.conditions, "Ready").to_json()
    assert (ready_now["reason"], ready_now["lastTransitionTime"]) == ("NodesStarting", CREATED)
