"""What a pool says of itself, from what is observed."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.unit.operator.make import (
    CONNECTED,
    CREATED,
    HEAD,
    NODE_GROUP,
    NOW,
    SESSION,
    child,
    observed,
    of_kind,
    pod,
    pool,
    ready_pool,
    reservation,
    status_of,
    statuses,
    wanted,
    workers,
)
from workergroups_api.conditions import Explanation, find
from workergroups_api.names import DOUBTS_ANNOTATION, MANIFEST_ANNOTATION, RESTART_ANNOTATION, RESTARTS_ANNOTATION
from workergroups_operator.failures import Failures
from workergroups_operator.observed import AgentHeartbeat
from workergroups_operator.policy.pod_trouble import pod_trouble

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


LEAVING_HEAD = pod("head")
LEAVING_HEAD["metadata"]["deletionTimestamp"] = CREATED


def ready_of(pool_, failures=None, now=NOW, refused_pods=None, **parts):
    seen = observed(pools=(pool_,), **parts)
    return status_of(seen, failures=failures, now=now, refused_pods=refused_pods).ready


def test_a_reserved_pool_is_ready():
    ready = ready_of(ready_pool())
    assert (ready.status, ready.reason, ready.message) == ("True", "Reserved", "4 of 4 bundles reserved")


@pytest.mark.parametrize(
    ("pool_", "parts", "reason", "words"),
    [
        (
            pool(),
            {"pods": (), "failures": Failures({"RayCluster": Explanation("KubeRayMissing", "install KubeRay")})},
            "KubeRayMissing",
            "install KubeRay",
        ),
        (
            pool(),
            {"pods": (), "failures": Failures({"NetworkPolicy": Explanation("ApplyFailed", "invalid peer")})},
            "ApplyFailed",
            "invalid peer",
        ),
        (pool(), {"pods": ()}, "HeadStarting", "waiting for KubeRay to create the head"),
        (pool(), {"pods": (LEAVING_HEAD,)}, "HeadStarting", "until the head's old pod, actors-head, which is being"),
        (pool(), {"pods": (), "complaint": "no quota"}, "HeadStarting", "KubeRay: no quota"),
        (
            pool(),
            {"pods": (), "children": child("RayCluster", "actors", spec={"suspend": True})},
            "RayClusterSuspended",
            'kubectl patch raycluster actors --type=merge --patch=\'{"spec":{"suspend":false}}\'',
        ),
        (
            pool(),
            {"pods": (), "refused_pods": {"head": Explanation("PodsRefused", "quota")}},
            "PodsRefused",
            "head: quota",
        ),
        (pool(), {"pods": (pod("head", phase="Pending"),)}, "HeadStarting", "pod to run"),
        (pool(), {"agent": AgentHeartbeat()}, "AgentStarting", "waiting for the agent"),
        (pool(), {"pods": (pod("head"),)}, "NodesStarting", "0 of 2 nodes joined Ray; 0 of 2 pods created"),
        (
            pool(),
            {"pods": (pod("head"), pod("worker", **UNSCHEDULABLE))},
            "InsufficientResources",
            "not enough nvidia.com/gpu on nodes with nvidia.com/gpu.product=A100: "
            "pod actors-worker needs nvidia.com/gpu: 4",
        ),
        (pool(status=reservation("p-0", "p-1", reserved=1)), {}, "Reserving", "2 of 4 bundles"),
    ],
)
def test_the_first_link_that_is_missing_is_the_reason(pool_, parts, reason, words):
    ready = ready_of(pool_, **parts)
    assert (ready.status, ready.reason) == ("False", reason)
    assert words in ready.message


def test_a_pod_without_devices_says_what_it_requests_and_nothing_of_preemption():
    says = "0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available: no victims found."
    waiting = {"type": "PodScheduled", "status": "False", "message": says}
    requests = ({"cpu": "100m", "memory": "1Gi"}, {"cpu": "2"}, {})
    containers = [{"name": f"c{number}", "resources": {"requests": each}} for number, each in enumerate(requests)]
    head = pod("head", phase="Pending", conditions=[waiting]) | {"spec": {"containers": containers}}
    assert ready_of(pool(), pods=(head,)).message == (
        "head: not enough cpu: pod actors-head needs cpu: 100m + 2, memory: 1Gi. Scheduler: 0/3 nodes are available: "
        "3 Insufficient cpu"
    )


def test_cordoned_nodes_are_counted_with_the_way_out():
    says = "0/3 nodes are available: 1 Insufficient nvidia.com/gpu, 2 node(s) were unschedulable."
    waiting = {"type": "PodScheduled", "status": "False", "message": says}
    containers = [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "2"}}}]
    worker = pod("p-0", phase="Pending", conditions=[waiting]) | {"spec": {"containers": containers}}
    message = pod_trouble(worker).message
    assert message.startswith(
        "not enough nvidia.com/gpu; 2 cordoned, which take no pods before `kubectl uncordon NODE`"
    )


def test_a_pool_that_reserves_nothing_is_ready_with_its_nodes():
    seen = observed(pools=(pool(reservation="None", status=reservation("p-0", "p-1", reserved=0)),))
    update = status_of(seen)
    assert (update.ready.status, update.ready.reason) == ("True", "NodesJoined")
    assert update.after.ready_nodes == 2
    assert find(update.after.conditions, "BundlesReserved") is None


def test_a_failed_write_changes_nothing_about_what_runs():
    failures = Failures({"RayCluster": Explanation("ApplyFailed", "429"), "ConfigMap": Explanation("ApplyFailed", "")})
    assert ready_of(ready_pool(), failures=failures).status == "True"


def test_a_network_policy_that_cannot_be_written_is_out_of_date():
    failures = Failures({"NetworkPolicy": Explanation("ApplyFailed", "NetworkPolicy actors: invalid peer")})
    after = status_of(observed(pools=(ready_pool(),)), failures=failures).after
    found = find(after.conditions, "UpToDate")
    assert (found.status, found.reason, found.message) == ("False", "ApplyFailed", "NetworkPolicy actors: invalid peer")


def test_pods_that_are_refused_are_the_reason_with_the_api_servers_words():
    refused = {NODE_GROUP: Explanation("PodsRefused", "serviceaccount nobody not found")}
    ready = ready_of(pool(), pods=(pod("head"),), refused_pods=refused)
    assert (ready.reason, ready.message) == ("PodsRefused", "0 of 2 pods created: serviceaccount nobody not found")


def test_a_refused_template_is_the_reason_though_pods_of_the_one_before_still_wait_for_a_node():
    refused = {NODE_GROUP: Explanation("PodsRefused", "unknown field")}
    waiting = [pod("worker", name, **UNSCHEDULABLE) for name in ("p-0", "p-1")]
    ready = ready_of(pool(), pods=(pod("head"), *waiting), refused_pods=refused)
    assert (ready.reason, ready.message) == ("PodsRefused", "0 of 2 pods created: unknown field")


def test_a_refused_template_does_not_matter_while_all_pods_are_there():
    refused = {NODE_GROUP: Explanation("PodsRefused", "quota")}
    assert ready_of(ready_pool(), refused_pods=refused).status == "True"


@pytest.mark.parametrize(
    "pods",
    [
        workers("p-0"),
        workers("p-0", "p-2"),
        (*workers("p-0"), pod("worker", "p-1", phase="Failed")),
        (*workers("p-0"), pod("worker", "p-1", conditions=[{"type": "DisruptionTarget", "status": "True"}])),
    ],
    ids=["one is gone", "one is another", "one was evicted", "one is about to be"],
)
def test_nodes_that_joined_must_be_the_pods_that_run_now(pods):
    ready = ready_of(ready_pool(), pods=(pod("head"), *pods))
    assert (ready.status, ready.reason) == ("False", "PodsChanged")


def test_nodes_whose_pods_wait_for_devices_have_not_joined():
    waiting = pod("worker", "p-1", **UNSCHEDULABLE)
    ready = ready_of(ready_pool(), pods=(pod("head"), *workers("p-0"), waiting))
    assert (ready.reason, ready.message[:27]) == ("InsufficientResources", "1 of 2 nodes joined Ray: no")


def test_a_pod_that_is_being_deleted_does_not_count():
    leaving = pod("worker", "p-1")
    leaving["metadata"]["deletionTimestamp"] = CREATED
    ready = ready_of(ready_pool(), pods=(pod("head"), *workers("p-0"), leaving))
    assert (ready.status, ready.reason) == ("False", "PodsChanged")


def test_a_pod_that_is_being_evicted_is_named_before_ray_has_noticed():
    evicted = {"type": "DisruptionTarget", "status": "True", "message": "preempting for a pod of higher priority"}
    leaving = pod("worker", "p-1", conditions=[evicted])
    leaving["metadata"]["deletionTimestamp"] = CREATED
    ready = ready_of(ready_pool(), pods=(pod("head"), *workers("p-0"), leaving))
    assert ready.reason == "PodsChanged"
    assert ready.message.startswith(
        "pod p-1 is being evicted: preempting for a pod of higher priority, and Ray has not"
    )


def test_a_node_that_has_given_notice_says_until_when_it_runs():
    leaving = pod("worker", "p-1", containerStatuses=[{"name": "ray-worker", "state": {"running": {}}}])
    leaving["metadata"]["deletionTimestamp"] = (NOW + timedelta(seconds=20)).isoformat()
    seen = {"pods": (pod("head"), *workers("p-0"), leaving)}
    ready = ready_of(ready_pool(), **seen)
    assert ready.reason == "NodeLeaving"
    assert ready.message.startswith("pod p-1 is being deleted: its ranks have been told, and it ends when they have")
    assert ready_of(ready_pool(), now=NOW + timedelta(seconds=20), **seen).reason == "PodsChanged"  # its node is lost


def test_what_was_seen_in_another_session_says_nothing():
    old = pool(status=reservation("p-0", "p-1", session="before"))
    ready = ready_of(old)
    assert (ready.status, ready.reason) == ("False", "NodesStarting")


KNOWN = (HEAD, SESSION)


@pytest.mark.parametrize(
    ("heartbeat", "expected"),
    [
        (CONNECTED, ("True", "Reserved")),
        (AgentHeartbeat(session=None, away_seconds=1.0), ("True", "Reserved")),
        (AgentHeartbeat(session=None, away_seconds=3.5), ("Unknown", "AgentLost")),
        (AgentHeartbeat(session=SESSION, is_silent=True), ("Unknown", "AgentLost")),
        (AgentHeartbeat(session="another"), ("False", "AgentStarting")),
    ],
)
def test_an_agent_that_is_away_is_believed_for_a_moment(heartbeat, expected):
    ready = ready_of(ready_pool(), agent=replace(heartbeat, known=KNOWN))
    assert (ready.status, ready.reason) == expected


def test_with_a_lost_agent_nobody_knows_how_many_nodes_there_are():
    update = status_of(observed(pools=(ready_pool(),), agent=AgentHeartbeat(SESSION, KNOWN, is_silent=True)))
    assert update.after.ready_nodes is None
    others = [each for each in update.after.conditions if each.type not in ("Progressing", "UpToDate")]
    assert {condition.status for condition in others} == {"Unknown"}


def test_the_status_of_a_lost_agent_reports_what_prevents_its_return():
    pulling = {"name": "executor", "image": "gone:1", "state": {"waiting": {"reason": "ImagePullBackOff"}}}
    pods = (pod("head"), *workers("p-0", "p-1"), pod("agent", phase="Pending", containerStatuses=[pulling]))
    ready = ready_of(ready_pool(), pods=pods, agent=AgentHeartbeat(SESSION, KNOWN, is_silent=True))
    assert (ready.status, ready.reason) == ("Unknown", "AgentLost")
    assert "the state is unknown: agent: pod actors-agent, container executor: cannot pull gone:1" in ready.message


@pytest.mark.parametrize(
    ("agents", "words"),
    [
        ((), "it has no pod at the moment"),
        ((pod("agent", phase="Pending"),), "its pod actors-agent is starting"),
        ((pod("agent"),), "its pod is gone or hangs"),
    ],
)
def test_while_the_agents_pod_is_replaced_the_status_says_so(agents, words):
    pods = (pod("head"), *workers("p-0", "p-1"), *agents)
    ready = ready_of(ready_pool(), pods=pods, agent=AgentHeartbeat(SESSION, KNOWN, is_silent=True))
    assert f"so the state is unknown: {words}" in ready.message


def test_a_cluster_that_is_restarted_says_why_until_its_agent_is_connected():
    why = "Secret actors with Ray's token was deleted"
    noted = child("Lease", "actors-agent", metadata={"annotations": {RESTART_ANNOTATION: why}})
    starting = ready_of(pool(), children=noted, agent=AgentHeartbeat())
    assert (starting.reason, why in starting.message) == ("AgentStarting", True)
    assert why not in ready_of(pool(), children=noted, agent=CONNECTED).message


def test_a_cluster_whose_pools_are_all_suspended_has_no_restarts_behind_it():
    noted = {
        RESTART_ANNOTATION: "the Secret was deleted",
        RESTARTS_ANNOTATION: '{"failures": 3}',
        DOUBTS_ANNOTATION: "a",
    }
    seen = observed(
        pools=(pool(suspend=True),),
        children=child("Lease", "actors-agent", metadata={"annotations": noted}),
        pods=(),
        agent=AgentHeartbeat(),
    )
    assert of_kind("Lease", wanted(seen))["metadata"]["annotations"].keys() == {MANIFEST_ANNOTATION}


def test_a_head_that_is_gone_is_seen_at_once_whatever_was_reported():
    ready = ready_of(ready_pool(), agent=replace(CONNECTED, known=KNOWN), pods=workers("p-0", "p-1"))
    assert (ready.status, ready.reason) == ("False", "HeadStarting")


def test_a_new_head_is_not_believed_to_be_in_the_old_session():
    life_2 = {"name": "ray-head", "containerID": "life-2", "state": {"running": {}}}
    pods = (pod("head", containerStatuses=[life_2]), *workers("p-0", "p-1"))
    early = AgentHeartbeat(SESSION, KNOWN, seen_with_head_seconds=2.0)
    ready = ready_of(ready_pool(), pods=pods, agent=early)
    assert (ready.status, ready.reason) == ("False", "AgentStarting")


def test_the_deadline_is_in_the_status_until_the_pool_is_ready():
    late = status_of(observed(pools=(pool(progressDeadlineSeconds=90),)))
    assert late.after.deadline.isoformat() == "2026-01-01T12:01:30+00:00"
    assert status_of(observed(pools=(ready_pool(),))).after.deadline is None


def test_a_pool_that_was_ready_has_the_whole_deadline_again():
    was_ready = {"type": "Ready", "status": "True", "reason": "Reserved", "lastTransitionTime": CREATED}
    seen = observed(pools=(pool(progressDeadlineSeconds=90, status={"conditions": [was_ready]}),))
    assert status_of(seen).after.deadline == NOW + timedelta(seconds=90)


@pytest.mark.parametrize(("since", "seconds"), [("11:59:59", 2), ("11:59:20", 10), ("10:00:00", 60)])
def test_what_is_in_the_way_is_looked_at_again_without_any_event(since, seconds):
    waits = {"type": "Ready", "status": "False", "reason": "X", "lastTransitionTime": f"2026-01-01T{since}Z"}
    waiting = pool(progressDeadlineSeconds=604800, status={"conditions": [waits]})
    in_the_way = child("Service", "actors-head-svc", "somebody")
    assert statuses(observed(pools=(waiting,), children=in_the_way)).requeue_after == seconds


def test_a_ready_pool_waits_for_events_only():
    assert statuses(observed(pools=(ready_pool(),))).requeue_after == float("inf")


def test_an_edited_deadline_turns_nothing():
    body = ready_pool().model_copy(update={"metadata": ready_pool().metadata | {"generation": 7}})
    assert ready_of(body).status == "True"


def test_the_transition_time_stays_while_the_status_does():
    before = {"type": "NodesReady", "status": "False", "reason": "NodesStarting", "lastTransitionTime": CREATED}
    pods = (pod("head"), pod("worker", **UNSCHEDULABLE))
    update = status_of(observed(pools=(pool(status={"conditions": [before]}),), pods=pods))
    nodes = find(update.after.conditions, "NodesReady")
    assert nodes.reason == "InsufficientResources"
    assert nodes.last_transition_time.isoformat() == "2026-01-01T11:59:00+00:00"


def test_nothing_new_means_nothing_to_write():
    first = status_of(observed(pools=(ready_pool(),)))
    again = ready_pool(**first.after.to_json())
    unchanged = status_of(observed(pools=(again,)), now=NOW + timedelta(hours=1))
    assert unchanged.after == unchanged.before


def test_a_message_of_any_kind_and_length_fits_into_a_condition():
    odd = "\ud83d \x00 \N{PILE OF POO} " + "x" * 40_000
    ready = ready_of(pool(), pods=(), complaint=odd)
    assert len(ready.message) <= 2048
    ready.message.encode()


def test_pods_that_are_refused_are_reported_before_the_head_is_up():
    refused = {NODE_GROUP: Explanation("PodsRefused", "quota")}
    assert ready_of(pool(), pods=(), refused_pods=refused).reason == "PodsRefused"


def test_a_pod_that_no_node_takes_is_the_reason_before_the_cluster_is_up():
    pods = (pod("head"), pod("worker", **UNSCHEDULABLE))
    assert ready_of(pool(), pods=pods, agent=AgentHeartbeat()).reason == "InsufficientResources"
    crashing = [{"name": "ray-worker", "image": "x", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]
    pods = (pod("worker", containerStatuses=crashing),)
    assert ready_of(pool(), pods=pods).reason == "HeadStarting"


@pytest.mark.parametrize(
    ("accelerator", "described"), [({"product": "A100"}, "4 x A100"), ({"vendor": "none"}, "none")]
)
def test_the_status_names_the_devices_of_all_nodes(accelerator, described):
    assert status_of(observed(pools=(pool(accelerator=accelerator),))).after.accelerators == described


def test_a_new_pod_that_waits_for_the_devices_of_one_that_is_being_deleted_says_so():
    leaving = pod("worker", "actors-old")
    leaving["metadata"]["deletionTimestamp"] = CREATED
    pods = (pod("head"), leaving, pod("worker", "actors-new", **UNSCHEDULABLE))
    ready = ready_of(pool(), pods=pods)
    assert (
        ready.reason,
        "waiting until pod actors-old, which is being deleted, gives its devices back" in ready.message,
    ) == (
        "NodesStarting",
        True,
    )
    crashing = [{"name": "ray-worker", "image": "x", "state": {"waiting": {"reason": "ErrImagePull"}}}]
    pods = (pod("head"), leaving, pod("worker", "actors-new", containerStatuses=crashing))
    assert ready_of(pool(), pods=pods).reason == "ImagePullFailed"
