"""What a pool says of itself, from what is observed."""

from datetime import timedelta

import pytest
from make import CREATED, NOW, agent, observed, pod, pool, ready_pool, reserved

from workergroups_api.conditions import find
from workergroups_operator.apply import ApplyFailure
from workergroups_operator.policy.sharing import Sharing
from workergroups_operator.status import status

UNSCHEDULABLE = {
    "phase": "Pending",
    "conditions": [
        {
            "type": "PodScheduled",
            "status": "False",
            "message": "0/3 nodes are available: 1 Insufficient nvidia.com/gpu, 2 node(s) didn't match selector.",
        }
    ],
}


def ready_of(pool_, now=NOW, failure=None, refused=None, **parts):
    sharing = Sharing((pool_,), refused or {})
    statements = status(observed(pools=(pool_,), **parts), sharing, {}, failure, now)
    return statements.statements[0].ready, statements


def test_a_reserved_pool_is_ready():
    ready, _ = ready_of(ready_pool())
    assert (ready.status, ready.reason, ready.message) == ("True", "Reserved", "4 of 4 bundles reserved")


@pytest.mark.parametrize(
    ("pool_", "parts", "reason", "words"),
    [
        (pool(), {"failure": ApplyFailure("KubeRayMissing", "install KubeRay")}, "KubeRayMissing", "install KubeRay"),
        (pool(), {"refused": {"actors": "spec.rayVersion is 2.52.0"}}, "RayVersionConflict", "2.52.0"),
        (pool(), {"pods": ()}, "HeadStarting", "waiting for KubeRay to make the head"),
        (pool(), {"pods": (pod("head", phase="Pending"),)}, "HeadStarting", "pod to run"),
        (pool(), {"children": agent(available=False)}, "AgentStarting", "waiting for the agent"),
        (pool(), {}, "NodesStarting", "0 of 2 nodes joined Ray; 0 of 2 pods made"),
        (
            pool(),
            {"pods": (pod("head"), pod("worker", **UNSCHEDULABLE))},
            "InsufficientResources",
            "not enough nvidia.com/gpu on nodes with nvidia.com/gpu.product=A100: "
            "pod actors-worker needs nvidia.com/gpu: 4",
        ),
        (pool(status={"reservation": reserved("p-0", "p-1", bundles=2)}), {}, "Reserving", "2 of 4 bundles"),
    ],
)
def test_the_first_link_that_is_missing_is_the_reason(pool_, parts, reason, words):
    ready, _ = ready_of(pool_, **parts)
    assert (ready.status, ready.reason) == ("False", reason)
    assert words in ready.message


def test_before_the_deadline_the_message_says_until_when():
    ready, statements = ready_of(pool(reservationDeadlineSeconds=90))
    assert ready.message.endswith("(deadline 12:00:30Z)")
    assert statements.look_again_seconds == 30


def test_after_the_deadline_the_reason_says_so_and_the_message_still_says_what_is_missing():
    ready, _ = ready_of(pool(reservationDeadlineSeconds=60))
    assert ready.reason == "DeadlineExceeded"
    assert ready.message == ("not ready within 60 s, by 12:00:00Z: 0 of 2 nodes joined Ray; 0 of 2 pods made")


def test_a_pool_that_was_ready_has_the_whole_deadline_again():
    was_ready = {"type": "Ready", "status": "True", "reason": "Reserved", "lastTransitionTime": CREATED}
    _, statements = ready_of(pool(reservationDeadlineSeconds=90, status={"conditions": [was_ready]}))
    assert statements.look_again_seconds == 90


CLUSTER_WAS_READY = {
    "conditions": [
        {"type": "ClusterReady", "status": "True", "reason": "AgentConnected", "lastTransitionTime": CREATED}
    ]
}


@pytest.mark.parametrize(("away", "expected"), [(timedelta(seconds=20), "True"), (timedelta(seconds=61), "Unknown")])
def test_an_agent_that_is_away_is_believed_for_a_minute(away, expected):
    since = (NOW - away).isoformat()
    ready, _ = ready_of(ready_pool(**CLUSTER_WAS_READY), children=agent(available=False, since=since))
    assert ready.status == expected


def head_started(at):
    running = {"name": "ray-head", "state": {"running": {"startedAt": at}}}
    return (pod("head", containerStatuses=[running]),)


@pytest.mark.parametrize("available", [True, False])
def test_an_agent_is_not_believed_about_a_head_that_started_after_it_connected(available):
    parts = {"children": agent(available, since="2026-01-01T11:59:30Z")}
    before, _ = ready_of(ready_pool(**CLUSTER_WAS_READY), pods=head_started("2026-01-01T11:59:20Z"), **parts)
    assert before.status == "True"
    after, _ = ready_of(ready_pool(**CLUSTER_WAS_READY), pods=head_started("2026-01-01T11:59:40Z"), **parts)
    assert (after.status, after.reason) == ("False", "AgentStarting")


def test_a_head_that_is_gone_is_seen_at_once_whatever_was_reported():
    ready, _ = ready_of(ready_pool(**CLUSTER_WAS_READY), pods=())
    assert (ready.status, ready.reason) == ("False", "HeadStarting")


def test_the_transition_time_stays_while_the_status_does():
    before = {"type": "NodesReady", "status": "False", "reason": "NodesStarting", "lastTransitionTime": CREATED}
    _, statements = ready_of(pool(status={"conditions": [before]}), pods=(pod("head"), pod("worker", **UNSCHEDULABLE)))
    nodes = find(statements.statements[0].after.conditions, "NodesReady")
    assert nodes.reason == "InsufficientResources"
    assert nodes.last_transition_time.isoformat() == "2026-01-01T11:59:00+00:00"


def test_nothing_new_means_nothing_to_write():
    _, statements = ready_of(ready_pool())
    again = ready_pool(**statements.statements[0].after.to_json())
    _, unchanged = ready_of(again, now=NOW + timedelta(hours=1))
    assert unchanged.statements[0].after == unchanged.statements[0].before
