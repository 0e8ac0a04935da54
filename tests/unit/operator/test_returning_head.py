"""When a head that is gone may come back with its nodes and ranks, and what is said meanwhile."""

from datetime import timedelta

import pytest

from tests.unit.operator.make import (
    HEAD,
    NOW,
    RANKS,
    SESSION,
    child,
    group,
    observed,
    of_kind,
    pod,
    pool,
    ready_pool,
    statuses,
    wanted,
    workers,
)
from workergroups_api.conditions import find
from workergroups_operator.observed import AgentHeartbeat
from workergroups_operator.policy.agent_liveness import head_may_return


def cluster(head=None):
    """The RayCluster whose head was made from that spec."""
    made = of_kind("RayCluster", wanted(observed(pools=(pool(head=head or {}),))))
    return child("RayCluster", "actors", spec=made["spec"])


def head_pod(name="actors-head", phase="Running", ray="2.60.0", **more):
    looked = {"name": "check-image", "state": {"terminated": {"message": f"ray {ray} python 3.12.3"}}}
    return pod("head", name, phase, initContainerStatuses=[looked], containerStatuses=[], **more)


GONE = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
CLAIM = {"gcsStorage": {"claimName": "heads"}}


@pytest.mark.parametrize(
    ("heads", "head", "known", "expected"),
    [
        ([head_pod()], None, (HEAD, SESSION), True),
        ([head_pod(ray="2.100.0")], None, (HEAD, SESSION), True),
        ([head_pod(ray="2.60rc1")], None, (HEAD, SESSION), True),
        # Ray keeps no state on a disk there.
        ([head_pod(ray="2.59.1")], None, (HEAD, SESSION), False),
        ([head_pod(ray="2.59.1")], CLAIM, (HEAD, SESSION), False),
        # The pod's volume is gone with it, or is about to go.
        ([], None, (HEAD, SESSION), False),
        ([head_pod("another")], None, (HEAD, SESSION), False),
        ([head_pod(phase="Failed")], None, (HEAD, SESSION), False),
        ([head_pod(conditions=[GONE])], None, (HEAD, SESSION), False),
        ([], CLAIM, (HEAD, SESSION), True),
        ([head_pod("another")], CLAIM, (HEAD, SESSION), True),
        # There was none.
        ([head_pod()], CLAIM, None, False),
    ],
)
def test_a_head_may_return_if_its_state_outlives_it(heads, head, known, expected):
    # The spec was changed since, and the head not yet restarted.
    spec = {} if head else {"head": CLAIM}
    parts = {
        "pools": (pool(status=ready_pool().status.to_json(), **spec),),
        "pods": tuple(heads),
        "agent": AgentHeartbeat(SESSION, known),
    }
    assert head_may_return(observed(**parts, children=cluster(head))) is expected
    assert not head_may_return(observed(**parts))  # somebody has deleted the cluster
    earlier = parts | {"pools": (pool(**spec),)}  # the session was of another cluster of this name
    assert not head_may_return(observed(**earlier, children=cluster(head)))
    assert not head_may_return(observed(**parts, children=child("RayCluster", "actors", spec={"suspend": True})))


def test_a_head_does_not_run_while_the_one_before_it_still_does():
    """The agent may be connected to that one, and its heartbeats say nothing of the next."""
    old, new = head_pod("old"), head_pod("new")
    for each in (old, new):
        each["status"]["containerStatuses"] = pod("head")["status"]["containerStatuses"]

    def head(seconds_until_the_end, **more):
        ends = NOW + timedelta(seconds=seconds_until_the_end)
        leaving = {"metadata": old["metadata"] | {"deletionTimestamp": ends.isoformat()}}
        seen = observed(pods=(old | leaving | more, new))
        return seen.head, seen.leaving_head_seconds

    assert head(3.0) == (None, 8.0)
    assert head(-4.0) == (None, 1.0)
    assert head(-5.0) == ("uid-new/life-1", 0.0)  # its node is lost
    assert head(3.0, status=head_pod()["status"]) == ("uid-new/life-1", 0.0)  # its container has ended


BACK_OFF = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s restarting failed container"}}
RAN = {"incarnation": 1, "session": SESSION, "ranks": RANKS}


def conclusions(heads, head=None):
    """The updates of pool and group while the head that was known last does not run."""
    trainer = group(status=RAN)
    seen = observed(
        pools=(pool(status=ready_pool().status.to_json(), head=head or {}),),
        groups=(trainer,),
        pods=(*heads, *workers("p-0", "p-1")),
        agent=AgentHeartbeat(SESSION, (HEAD, SESSION), away_seconds=5.0),
        children=cluster(head),
    )
    return statuses(seen).updates


def test_while_the_head_starts_again_all_is_unknown_for_one_reason():
    for update in conclusions([head_pod()]):
        assert (update.ready.status, update.ready.reason) == ("Unknown", "HeadAway")
        assert "ranks that ran keep running" in update.ready.message
        assert find(update.after.conditions, "Failed").status == "Unknown"
    assert update.after.incarnation == 1


def test_what_keeps_the_head_from_starting_is_said():
    ended = {"terminated": {"reason": "Error", "exitCode": 1, "message": "its volume\nis full"}}
    head = {"name": "ray-head", "restartCount": 2, "state": BACK_OFF, "lastState": ended}
    crashing = pod("head", containerStatuses=[head])
    for update in conclusions([crashing]):
        assert update.ready.reason == "HeadAway"
        assert "back-off 10s restarting failed container" in update.ready.message
        assert "exit code 1: its volume is full" in update.ready.message


def test_a_head_whose_pod_is_gone_is_lost_unless_a_claim_has_its_state():
    assert {update.ready.status for update in conclusions([])} == {"False"}
    assert {update.ready.reason for update in conclusions([], head=CLAIM)} == {"HeadAway"}


@pytest.mark.parametrize(
    ("spec", "source"),
    [({}, {"emptyDir": {}}), ({"head": CLAIM}, {"persistentVolumeClaim": {"claimName": "heads"}})],
)
def test_the_head_has_a_volume_for_its_state_and_a_directory_of_its_own_there(spec, source):
    cluster = of_kind("RayCluster", wanted(observed(pools=(pool(**spec),))))
    of_head = cluster["spec"]["headGroupSpec"]["template"]["spec"]
    (volume,) = [each for each in of_head["volumes"] if each["name"] == "workergroups-gcs-storage"]
    assert volume == {"name": "workergroups-gcs-storage", **source}
    (container,) = of_head["containers"]
    (mount,) = [each for each in container["volumeMounts"] if each["name"] == volume["name"]]
    (variable,) = [each for each in container["env"] if each["name"] == "WORKERGROUPS_GCS_STORAGE"]
    assert variable["value"] == f"{mount['mountPath']}/actors"
