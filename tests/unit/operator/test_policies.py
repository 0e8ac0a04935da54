"""Decisions, one table each."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.unit.operator.make import KEY, NOW, child, observed, owned_by, pod, pool, statuses
from workergroups_api.conditions import MAX_MESSAGE
from workergroups_api.failure_policy import RestartHistory
from workergroups_api.group_status import WorkerGroupStatus
from workergroups_api.plan import IncarnationRecord, PlannedBundles, PlannedGroup
from workergroups_api.report import GroupReport
from workergroups_api.retries import Retries
from workergroups_api.run import RunStatus
from workergroups_operator.observed import AgentHeartbeat
from workergroups_operator.policy.agent_liveness import AgentState, agent_liveness
from workergroups_operator.policy.cluster_restart import next_restart, why_restart
from workergroups_operator.policy.generated_names import without_generated_names
from workergroups_operator.policy.incarnation import (
    GroupIncarnation,
    LaunchOutcome,
    latest,
    launch_outcome,
    next_incarnation,
    suspended_incarnation,
    why_new,
)
from workergroups_operator.policy.lifetime import obstacle
from workergroups_operator.policy.token import encoded, token_digest
from workergroups_operator.timings import Timings

SEEN_LATE = AgentHeartbeat("s2", seen_with_head_seconds=4.0)
SEEN_EARLY = AgentHeartbeat("s2", seen_with_head_seconds=3.9)


@pytest.mark.parametrize(
    ("known", "head", "heartbeat", "state", "session"),
    [
        (None, None, AgentHeartbeat("s1"), AgentState.STARTING, None),
        (None, "h1", AgentHeartbeat(), AgentState.STARTING, None),
        (None, "h1", AgentHeartbeat("s1"), AgentState.STARTING, None),
        (None, "h1", AgentHeartbeat("s1", is_of_first_head=True), AgentState.CONNECTED, "s1"),
        (None, "h1", SEEN_EARLY, AgentState.STARTING, None),
        (None, "h1", SEEN_LATE, AgentState.CONNECTED, "s2"),
        (None, "h1", AgentHeartbeat("s1", is_silent=True), AgentState.STARTING, None),
        (("h1", "s1"), "h1", AgentHeartbeat("s1"), AgentState.CONNECTED, "s1"),
        (("h1", "s1"), "h1", AgentHeartbeat("s1", away_seconds=2.9), AgentState.AWAY, "s1"),
        (("h1", "s1"), "h1", AgentHeartbeat(None, away_seconds=2.9), AgentState.AWAY, "s1"),
        (("h1", "s1"), "h1", AgentHeartbeat(None, away_seconds=3.0), AgentState.LOST, "s1"),
        (("h1", "s1"), "h1", AgentHeartbeat("s1", is_silent=True), AgentState.LOST, "s1"),
        (("h1", "s1"), "h2", AgentHeartbeat("s1"), AgentState.STARTING, None),
        (("h1", "s1"), "h2", AgentHeartbeat("s1", seen_with_head_seconds=1.0), AgentState.STARTING, None),
        (("h1", "s1"), "h2", SEEN_EARLY, AgentState.STARTING, None),
        (("h1", "s1"), "h2", SEEN_LATE, AgentState.CONNECTED, "s2"),
        (("h1", "s1"), "h1", SEEN_EARLY, AgentState.STARTING, None),
        (("h1", "s1"), "h1", SEEN_LATE, AgentState.CONNECTED, "s2"),
        (("h1", "s1"), None, AgentHeartbeat("s1"), AgentState.STARTING, None),
    ],
)
def test_which_session_is_believed(known, head, heartbeat, state, session):
    liveness = agent_liveness(head, replace(heartbeat, known=known), Timings())
    assert (liveness.state, liveness.session) == (state, session)


@pytest.mark.parametrize(
    ("known", "head", "heartbeat", "state", "session"),
    [
        (None, None, AgentHeartbeat("s1"), AgentState.STARTING, None),
        (("h1", "s1"), "h1", AgentHeartbeat("s1"), AgentState.CONNECTED, "s1"),
        (("h1", "s1"), None, AgentHeartbeat("s1"), AgentState.HEAD_AWAY, None),
        (("h1", "s1"), "h2", AgentHeartbeat(None, away_seconds=60), AgentState.HEAD_AWAY, None),
        # What the agent wrote may still be of the head that is gone.
        (("h1", "s1"), "h2", AgentHeartbeat("s1", seen_with_head_seconds=3.9), AgentState.HEAD_AWAY, None),
        (("h1", "s1"), "h2", AgentHeartbeat("s1", seen_with_head_seconds=4.0), AgentState.CONNECTED, "s1"),
        # It came back without its state.
        (("h1", "s1"), "h2", SEEN_LATE, AgentState.CONNECTED, "s2"),
    ],
)
def test_a_head_that_may_return_is_waited_for(known, head, heartbeat, state, session):
    liveness = agent_liveness(head, replace(heartbeat, known=known), Timings(), head_may_return=True)
    assert (liveness.state, liveness.session) == (state, session)


def go_on(last, revision="r1", session="s1", launch=LaunchOutcome.UNKNOWN, now=NOW):
    return next_incarnation(last, revision, session, None, launch, None, now)


RUNNING = GroupIncarnation(3, "r1", "s1")
WITH_ENV = GroupIncarnation(3, "r1", "s1", environment="e1")


def go_on_with(environment, last=WITH_ENV, launch=LaunchOutcome.BEGUN, revision="r1", session="s1"):
    return next_incarnation(last, revision, session, environment, launch, None, NOW)


@pytest.mark.parametrize(
    ("next_", "number", "environment"),
    [
        (go_on_with("e1", last=None), 1, "e1"),
        (go_on_with(None, last=None), 1, None),
        # What was missing has come.
        (go_on_with("e1", last=RUNNING), 3, "e1"),
        # Ranks that run keep what they began with, also while nobody knows how the launch is.
        (go_on_with("e2"), 3, "e1"),
        (go_on_with("e2", launch=LaunchOutcome.SUCCEEDED), 3, "e1"),
        (go_on_with(None), 3, "e1"),
        (go_on_with(None, launch=LaunchOutcome.UNKNOWN), 3, "e1"),
        # A launch that has not begun begins with what there is.
        (go_on_with("e2", launch=LaunchOutcome.UNKNOWN), 4, "e2"),
        # So does another incarnation for any other reason.
        (go_on_with("e2", revision="r2"), 4, "e2"),
        (go_on_with("e2", session="s2"), 4, "e2"),
        (go_on_with(None, session="s2"), 4, None),
        (go_on_with("e2", launch=LaunchOutcome.INTERRUPTED), 4, "e2"),
    ],
)
def test_other_variables_from_secrets_wait_for_the_next_incarnation(next_, number, environment):
    assert (next_.number, next_.environment) == (number, environment)


@pytest.mark.parametrize(
    ("next_", "why"),
    [
        (None, None),
        (go_on(RUNNING), None),
        (go_on(RUNNING, revision="r2"), "incarnation 4 replaces incarnation 3: its spec, its code or its bundles have"),
        (go_on(RUNNING, session="s2"), "incarnation 4 replaces incarnation 3, which was for a Ray session"),
        # A failure, which has its own event.
        (replace(RUNNING, number=4), None),
        (suspended_incarnation(RUNNING, None), None),
    ],
)
def test_why_an_incarnation_begins_is_told_unless_one_has_failed(next_, why):
    said = why_new(WorkerGroupStatus(incarnation=3, revision="r1", session="s1"), next_)
    assert said is None if why is None else said.startswith(why)
    assert why_new(WorkerGroupStatus(), next_) is None


@pytest.mark.parametrize(
    ("next_", "expected"),
    [
        (go_on(None), GroupIncarnation(1, "r1", "s1")),
        (go_on(None, revision=None, session=None), GroupIncarnation(1, None, None)),
        (go_on(GroupIncarnation(1), revision="r1", session=None), GroupIncarnation(1, "r1", None)),
        (go_on(GroupIncarnation(1, "r1", None)), GroupIncarnation(1, "r1", "s1")),
        (go_on(RUNNING), RUNNING),
        (go_on(RUNNING, revision="r2"), GroupIncarnation(4, "r2", "s1")),
        (go_on(RUNNING, session="s2"), GroupIncarnation(4, "r1", "s2")),
        (go_on(RUNNING, revision="r2", session="s2"), GroupIncarnation(4, "r2", "s2")),
        (go_on(RUNNING, revision=None), RUNNING),
        (go_on(RUNNING, session=None), RUNNING),
        (go_on(RUNNING, launch=LaunchOutcome.INTERRUPTED), GroupIncarnation(4, "r1", "s1", Retries(failures=1))),
    ],
)
def test_ranks_made_anew_are_a_new_incarnation_and_nothing_else_is(next_, expected):
    assert next_ == expected


def interrupted(failures, next_in=None):
    """An incarnation whose launch was cut short, like others before it."""
    next_ = None if next_in is None else NOW + timedelta(seconds=next_in)
    return GroupIncarnation(3, "r1", "s1", Retries(failures=failures, next=next_))


@pytest.mark.parametrize(
    ("last", "number", "failures", "waits"),
    [
        (interrupted(0), 4, 1, None),
        (interrupted(1), 3, 2, 10),
        (interrupted(2, next_in=1), 3, 2, 1),
        (interrupted(2, next_in=0), 4, 2, None),
        (interrupted(2, next_in=-300), 4, 2, None),
        (interrupted(2), 3, 3, 20),
        (interrupted(3), 3, 4, 40),
        (interrupted(4), 3, 5, 80),
        (interrupted(5, next_in=0), 4, 5, None),
        (interrupted(5), 3, 6, None),
        (interrupted(6), 3, 6, None),
    ],
)
def test_launches_that_are_cut_short_are_retried_with_growing_pauses_and_not_for_ever(last, number, failures, waits):
    found = go_on(last, launch=LaunchOutcome.INTERRUPTED)
    next_ = None if waits is None else NOW + timedelta(seconds=waits)
    assert found == GroupIncarnation(number, "r1", "s1", Retries(failures=failures, next=next_))


@pytest.mark.parametrize("last", [interrupted(2), interrupted(2, next_in=5), interrupted(6)])
@pytest.mark.parametrize(
    ("change", "number"),
    [({"revision": "r2"}, 4), ({"session": "s2"}, 4), ({"launch": LaunchOutcome.SUCCEEDED}, 3)],
)
def test_a_change_a_new_session_and_a_success_give_back_all_retries(last, change, number):
    found = go_on(last, **({"launch": LaunchOutcome.INTERRUPTED} | change))
    assert (found.number, found.retries) == (number, Retries())


@pytest.mark.parametrize(
    ("report", "launch"),
    [
        (None, LaunchOutcome.UNKNOWN),
        (GroupReport(incarnation=2, state="LaunchInterrupted"), LaunchOutcome.UNKNOWN),
        (GroupReport(incarnation=3, state="LaunchInterrupted"), LaunchOutcome.INTERRUPTED),
        (GroupReport(incarnation=3, state="LaunchInterrupted", ready_count=2), LaunchOutcome.INTERRUPTED),
        (GroupReport(incarnation=3, state="Launched", ready_count=1), LaunchOutcome.BEGUN),
        (GroupReport(incarnation=3, state="Launching"), LaunchOutcome.BEGUN),
        (GroupReport(incarnation=3, state="LaunchFailed", created=1), LaunchOutcome.BEGUN),
        (GroupReport(incarnation=3, state="LaunchFailed"), LaunchOutcome.UNKNOWN),
        (GroupReport(incarnation=3, state="WaitingForEnvironment"), LaunchOutcome.UNKNOWN),
        (GroupReport(incarnation=3, state="Launched", ready_count=2), LaunchOutcome.SUCCEEDED),
        (GroupReport(incarnation=2, state="Launched", ready_count=2), LaunchOutcome.UNKNOWN),
    ],
)
def test_only_a_report_on_the_last_incarnation_tells_what_became_of_its_launch(report, launch):
    assert launch_outcome(RUNNING, report, 2) == launch


def test_of_status_and_plan_the_one_that_got_further_counts():
    written, planned = GroupIncarnation(2, "r1", "s1"), GroupIncarnation(3, "r2", "s1")
    assert latest(written, planned) == planned
    assert latest(planned, written) == planned
    assert latest(None, written) == written
    assert latest(None, None) is None
    assert latest(GroupIncarnation(2, "r1", None), GroupIncarnation(2, "r1", "s1")).session == "s1"
    assert latest(interrupted(1), interrupted(2)) == latest(interrupted(2), interrupted(1)) == interrupted(2)
    assert latest(interrupted(2), interrupted(2, next_in=5)) == interrupted(2, next_in=5)


def test_an_incarnation_is_read_as_it_was_recorded():
    on = (PlannedBundles(pool="actors", uid="u", start=0, count=4),)
    history, run = RestartHistory(count=2, failed_at=NOW), RunStatus(revision="r")
    known = GroupIncarnation(3, "r", "s", Retries(failures=1), "e", history, on, run, {2: 1})
    assert all(getattr(known, name) != getattr(GroupIncarnation(3), name) for name in IncarnationRecord.model_fields)
    for record in (WorkerGroupStatus(**known.recorded()), PlannedGroup(name="g", uid="u", **known.recorded())):
        assert GroupIncarnation.of(record.incarnation, record) == known
    for record in (WorkerGroupStatus(**RUNNING.recorded()), PlannedGroup(name="g", uid="u", **RUNNING.recorded())):
        assert GroupIncarnation.of(record.incarnation, record) == RUNNING


def service(*owners):
    return child("Service", "actors-head-svc", metadata={"ownerReferences": [*owners]})


RAY = {"kind": "RayCluster", "uid": "uid-RayCluster"}
ORPHANED = {"ownerReferences": [], "annotations": {"workergroups.dev/manifest": "of an earlier cluster"}}


@pytest.mark.parametrize(
    ("parts", "reason", "words"),
    [
        ({"children": child("ConfigMap", "actors-plan")}, None, ""),
        ({"children": child("ConfigMap", "actors-plan", "uid-old")}, "PreviousLeaving", "ConfigMap actors-plan"),
        ({"children": child("ConfigMap", "actors-plan", "uid-old", "uid-actors")}, None, ""),
        ({"children": child("Secret", "actors", metadata={"labels": {}})}, "NameTaken", "Secret actors exists"),
        ({"children": child("Secret", "actors", metadata={"ownerReferences": []})}, "NameTaken", "not created by"),
        ({"children": child("Secret", "actors", metadata=ORPHANED)}, "NameTaken", "has no owner any more"),
        ({"children": service()}, "NameTaken", "Service actors-head-svc exists"),
        ({"children": service(RAY)}, "PreviousLeaving", "Service"),
        ({"children": service(RAY) | child("RayCluster", "actors")}, None, ""),
        ({"pods": (pod("worker"),), "children": child("RayCluster", "actors")}, None, ""),
        ({"foreign_pods": (pod("worker"),)}, None, ""),
        ({"previous_pods": (pod("worker"),)}, "PreviousLeaving", "pod actors-worker"),
    ],
)
def test_nothing_of_an_earlier_life_or_of_a_stranger_is_taken_over(parts, reason, words):
    found = obstacle(observed(pools=(pool(),), **({"pods": ()} | parts)))
    assert (found.reason if found else None) == reason
    assert found is None or words in found.message


def test_owners_that_are_gone_are_no_obstacle_while_another_pool_lives():
    shared = child("ConfigMap", f"{KEY.name}-plan", metadata={"ownerReferences": owned_by("uid-gone", "uid-critics")})
    assert obstacle(observed(pools=(pool("critics", clusterName="actors"),), children=shared, pods=())) is None


def started_with(token):
    return child("RayCluster", "actors", metadata={"annotations": {"workergroups.dev/token": token_digest(token)}})


OLD = encoded("old")


@pytest.mark.parametrize(
    ("children", "words"),
    [
        ({}, None),
        (started_with(OLD) | child("Secret", "actors", data={"auth_token": OLD}), None),
        (started_with(OLD), "Secret actors with Ray's token was deleted"),
        (started_with(OLD) | child("Secret", "actors", data={"auth_token": encoded("new")}), "was changed"),
        (started_with(OLD) | child("Secret", "actors", data={}), "was deleted"),
        (child("RayCluster", "actors"), None),
    ],
)
def test_a_cluster_whose_token_is_lost_is_restarted_and_says_why(children, words):
    why = why_restart(observed(pools=(pool(),), children=children))
    assert (why is None) == (words is None)
    assert why is None or words in why


def lease(retries):
    return child("Lease", "actors-agent", metadata={"annotations": {"workergroups.dev/restarts": retries}})


def next_restarts(retries, why="the Secret was changed", is_over=False, **cluster):
    recorded = lease(retries if isinstance(retries, str) else retries.model_dump_json())
    children = recorded | child("RayCluster", "actors", metadata=cluster)
    return next_restart(observed(pools=(pool(),), children=children), why, is_over=is_over)


def again(failures, next_in=None):
    return Retries(failures=failures, next=None if next_in is None else NOW + timedelta(seconds=next_in))


@pytest.mark.parametrize(
    ("found", "retries", "is_due"),
    [
        (next_restarts(again(0)), again(1), True),
        (next_restarts("spoilt"), again(1), True),
        (next_restarts('{"failures": 1, "next": "2026-01-01T00:00:00"}'), again(1), True),
        (next_restarts(again(1)), again(2, 10), False),
        (next_restarts(again(2, next_in=5)), again(2, 5), False),
        (next_restarts(again(2, next_in=0)), again(2), True),
        (next_restarts(again(5)), again(6), False),
        (next_restarts(again(6)), again(6), False),
        # It is being deleted already.
        (next_restarts(again(2), deletionTimestamp="now"), again(2), False),
        # The new cluster starts; it answers.
        (next_restarts(again(2), why=None), again(2), False),
        (next_restarts(again(6), why=None, is_over=True), again(0), False),
    ],
)
def test_a_cluster_is_restarted_with_growing_pauses_and_not_for_ever(found, retries, is_due):
    assert (found.retries, found.is_due) == (retries, is_due)


@pytest.mark.parametrize(
    ("retries", "reason", "words"),
    [
        (
            again(0),
            "Restarting",
            "the running Ray knows only the old one: the operator restarts the cluster, and with it the ranks",
        ),
        (again(1), "Restarting", "as after the last restart; trying again at 12:00:10Z, 2 of 5"),
        (again(5), "RestartFailed", "after each of 5 restarts: find out who changes the Secret"),
    ],
)
def test_a_cluster_says_when_it_is_restarted_or_that_it_is_not(retries, reason, words):
    children = started_with(OLD) | lease(retries.model_dump_json())
    ready = statuses(observed(pools=(pool(),), children=children)).updates[0].ready
    assert (ready.reason, words in ready.message) == (reason, True)


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ('Pod "p-p-cd17-95wkc" is invalid: spec.x: bad', 'Pod "p-p-cd17-" is invalid: spec.x: bad'),
        ('pods "p-head-xtplh" is forbidden: no quota', 'pods "p-head-" is forbidden: no quota'),
        (
            'Failed to create worker Pod ns/p-worker-xtplh, pods "p-worker-xtplh" is forbidden: no',
            'Failed to create worker Pod ns/p-worker-, pods "p-worker-" is forbidden: no',
        ),
        ('pods "p-p-cd17-" is forbidden: no PriorityClass', 'pods "p-p-cd17-" is forbidden: no PriorityClass'),
        ("the API server is away", "the API server is away"),
    ],
)
def test_a_refusal_reads_the_same_each_time_though_each_pod_has_another_name(said, kept):
    assert without_generated_names(said) == kept


def test_of_a_text_with_generated_names_no_more_than_a_condition_holds_is_read():
    """Anybody can record an event about a cluster, and the search takes a step for each name."""
    names = "".join(f'pod "p{number}-abcde" is ' for number in range(50_000))
    assert len(without_generated_names(names)) <= MAX_MESSAGE
