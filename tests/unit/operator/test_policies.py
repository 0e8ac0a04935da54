"""Decisions, one table each."""

from dataclasses import replace

import pytest
from make import KEY, child, observed, owned_by, pod, pool

from workergroups_operator.observed import AgentSign
from workergroups_operator.policy.agent_liveness import AgentState, agent_liveness
from workergroups_operator.policy.generated_names import without_generated_names
from workergroups_operator.policy.incarnation import Incarnation, latest, next_incarnation
from workergroups_operator.policy.lifetime import obstacle
from workergroups_operator.policy.token import encoded, restart, token_digest

SEEN_LATE = AgentSign("s2", seen_with_head_seconds=4.0)
SEEN_EARLY = AgentSign("s2", seen_with_head_seconds=3.9)


@pytest.mark.parametrize(
    ("known", "head", "sign", "state", "session"),
    [
        (None, None, AgentSign("s1"), AgentState.STARTING, None),
        (None, "h1", AgentSign(), AgentState.STARTING, None),
        (None, "h1", AgentSign("s1"), AgentState.STARTING, None),
        (None, "h1", AgentSign("s1", is_of_first_head=True), AgentState.CONNECTED, "s1"),
        (None, "h1", SEEN_EARLY, AgentState.STARTING, None),
        (None, "h1", SEEN_LATE, AgentState.CONNECTED, "s2"),
        (None, "h1", AgentSign("s1", is_silent=True), AgentState.STARTING, None),
        (("h1", "s1"), "h1", AgentSign("s1"), AgentState.CONNECTED, "s1"),
        (("h1", "s1"), "h1", AgentSign("s1", away_seconds=2.9), AgentState.AWAY, "s1"),
        (("h1", "s1"), "h1", AgentSign(None, away_seconds=2.9), AgentState.AWAY, "s1"),
        (("h1", "s1"), "h1", AgentSign(None, away_seconds=3.0), AgentState.LOST, "s1"),
        (("h1", "s1"), "h1", AgentSign("s1", is_silent=True), AgentState.LOST, "s1"),
        (("h1", "s1"), "h2", AgentSign("s1"), AgentState.STARTING, None),
        (("h1", "s1"), "h2", AgentSign("s1", seen_with_head_seconds=1.0), AgentState.STARTING, None),
        (("h1", "s1"), "h2", SEEN_EARLY, AgentState.STARTING, None),
        (("h1", "s1"), "h2", SEEN_LATE, AgentState.CONNECTED, "s2"),
        (("h1", "s1"), "h1", SEEN_EARLY, AgentState.STARTING, None),
        (("h1", "s1"), "h1", SEEN_LATE, AgentState.CONNECTED, "s2"),
        (("h1", "s1"), None, AgentSign("s1"), AgentState.STARTING, None),
    ],
)
def test_which_session_is_believed(known, head, sign, state, session):
    liveness = agent_liveness(head, replace(sign, known=known))
    assert (liveness.state, liveness.session) == (state, session)


def go_on(last, revision="r1", session="s1", is_interrupted=False):
    return next_incarnation(last, revision, session, is_interrupted=is_interrupted)


RUNNING = Incarnation(3, "r1", "s1")


@pytest.mark.parametrize(
    ("next_", "expected"),
    [
        (go_on(None), Incarnation(1, "r1", "s1")),
        (go_on(None, revision=None, session=None), Incarnation(1, None, None)),
        (go_on(Incarnation(1), revision="r1", session=None), Incarnation(1, "r1", None)),
        (go_on(Incarnation(1, "r1", None)), Incarnation(1, "r1", "s1")),
        (go_on(RUNNING), RUNNING),
        (go_on(RUNNING, revision="r2"), Incarnation(4, "r2", "s1")),
        (go_on(RUNNING, session="s2"), Incarnation(4, "r1", "s2")),
        (go_on(RUNNING, revision="r2", session="s2"), Incarnation(4, "r2", "s2")),
        (go_on(RUNNING, revision=None), RUNNING),
        (go_on(RUNNING, session=None), RUNNING),
        (go_on(RUNNING, is_interrupted=True), Incarnation(4, "r1", "s1")),
    ],
)
def test_ranks_made_anew_are_a_new_incarnation_and_nothing_else_is(next_, expected):
    assert next_ == expected


def test_of_status_and_plan_the_one_that_got_further_counts():
    written, planned = Incarnation(2, "r1", "s1"), Incarnation(3, "r2", "s1")
    assert latest(written, planned) == planned
    assert latest(planned, written) == planned
    assert latest(None, written) == written
    assert latest(None, None) is None
    assert latest(Incarnation(2, "r1", None), Incarnation(2, "r1", "s1")).session == "s1"


def service(*owners):
    return child("Service", "actors-head-svc", metadata={"ownerReferences": [*owners]})


RAY = {"kind": "RayCluster", "uid": "uid-RayCluster"}


@pytest.mark.parametrize(
    ("parts", "reason", "words"),
    [
        ({"children": child("ConfigMap", "actors-plan")}, None, ""),
        ({"children": child("ConfigMap", "actors-plan", "uid-old")}, "PreviousLeaving", "ConfigMap actors-plan"),
        ({"children": child("ConfigMap", "actors-plan", "uid-old", "uid-actors")}, None, ""),
        ({"children": child("Secret", "actors", metadata={"labels": {}})}, "NameTaken", "Secret actors exists"),
        ({"children": child("Secret", "actors", metadata={"ownerReferences": []})}, "NameTaken", "delete it"),
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
def test_a_cluster_whose_token_is_lost_is_started_anew_and_says_why(children, words):
    why = restart(observed(pools=(pool(),), children=children))
    assert (why is None) == (words is None)
    assert why is None or words in why


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
