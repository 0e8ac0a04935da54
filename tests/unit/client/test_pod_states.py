"""Why a pod does not run, in one line."""

import pytest

from tests.unit.client.fake_cluster import SOON
from workergroups_client.pods.pod_states import pod_state

NO_GPU = (
    "0/3 nodes are available: 1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }, 2 "
    "Insufficient nvidia.com/gpu."
)
NO_PREEMPTION = "preemption: 0/3 nodes are available: 1 Preemption is not helpful for scheduling."

EVICTED = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "PreemptionByScheduler",
    "message": "for a pod of higher priority",
}


def pod(phase="Pending", node=None, **status):
    metadata = {"name": "ppo-worker-1", "creationTimestamp": SOON}
    return {"metadata": metadata, "spec": {"nodeName": node} if node else {}, "status": {"phase": phase, **status}}


def unscheduled(message="", reason="Unschedulable"):
    return pod(conditions=[{"type": "PodScheduled", "status": "False", "reason": reason, "message": message}])


def waiting(**reason):
    scheduled = {"type": "PodScheduled", "status": "True"}
    return pod(node="a", conditions=[scheduled], containerStatuses=[{"state": {"running": {}}}, {"state": reason}])


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (unscheduled(NO_GPU), NO_GPU.rstrip(".")),
        (unscheduled(f"{NO_GPU} {NO_PREEMPTION}"), NO_GPU.rstrip(".")),
        (unscheduled(f"{NO_GPU} no new claims to deallocate, {NO_PREEMPTION}"), NO_GPU.rstrip(".")),
        (unscheduled(reason="SchedulingGated"), "SchedulingGated"),
        (pod(), "no scheduler has looked at it yet"),
        (waiting(waiting={"reason": "ContainerCreating"}), "ContainerCreating"),
        (waiting(waiting={"reason": "ErrImagePull", "message": "no such host"}), "ErrImagePull: no such host"),
        (
            pod("Failed", "a", reason="Evicted", message="the node was low on memory"),
            "Evicted: the node was low on memory",
        ),
        (pod("Running", "a", conditions=[{"type": "Ready", "status": "False"}]), ""),
        (pod("Running", "a", conditions=[EVICTED]), "PreemptionByScheduler: for a pod of higher priority"),
        (pod("Running", "a", conditions=[EVICTED | {"status": "False"}]), ""),
    ],
)
def test_a_pod_that_does_not_run_says_why(found, why):
    assert pod_state(found).why == why


def test_a_pod_whose_containers_were_restarted_says_so():
    last = {"terminated": {"reason": "Error", "exitCode": 1}}
    one = {"name": "ray-worker", "restartCount": 2, "lastState": last, "state": {"running": {}}}
    assert pod_state(pod("Running", "a", containerStatuses=[{**one, "ready": False}])).why == (
        "not ready; ray-worker was restarted 2 times, the last time after Error, exit code 1"
    )
    assert pod_state(pod("Running", "a", containerStatuses=[{**one, "ready": True}])).why.startswith("ray-worker was")
    crashing = {**one, "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}}
    assert pod_state(pod("Running", "a", containerStatuses=[crashing])).why == "CrashLoopBackOff: back-off 10s"


def test_a_long_reason_is_one_line_of_bounded_length():
    many = ", ".join(f"1 node(s) had untolerated taint {{team-{number}:\x1b[2J }}" for number in range(100))
    why = pod_state(unscheduled(f"0/100 nodes are available: {many}.")).why
    assert why.startswith("0/100 nodes are available: 1 node(s)")
    assert len(why) <= 300
    assert "\x1b" not in why


def test_a_pod_that_is_being_deleted_says_so():
    leaving = pod("Running", "a")
    leaving["metadata"]["deletionTimestamp"] = SOON
    assert (pod_state(leaving).state, pod_state(pod("Running", "a")).state) == ("Terminating", "Running")
