"""What a reconcile keeps of an object does not grow with what others wrote into it."""

import asyncio
import copy
import json
from datetime import UTC, datetime

import pytest

from tests.unit.operator.make import KEY, Reads, metadata
from workergroups_api.manifest import RESOURCE_POOL, WORKER_GROUP
from workergroups_kube import Page
from workergroups_operator import lean, observe
from workergroups_operator.members import observe_members
from workergroups_operator.membership import Membership
from workergroups_operator.observed import deleted_at
from workergroups_operator.policy.passed_on import QUEUE_LABEL
from workergroups_operator.policy.spec_limits import MAX_METADATA

LARGE = "x" * 250_000
# Labels are short, and may be many.
MANY = {f"example.com/{'x' * 40}-{number}": "y" * 60 for number in range(3_000)}
RESTARTED_AT = "workergroups.dev/restarted-at"
# What is kept of any object without its user's own spec.
SMALL = 8_000


class Client(Reads):
    """Has the pool `actors` and the group `trainer`."""

    def __init__(self, pool, group):
        self._objects = {RESOURCE_POOL: pool, WORKER_GROUP: group}

    async def get(self, kind, namespace, name):
        return copy.deepcopy(self._objects[kind])


def observed(of_pool=(), of_group=(), worker=("class", "train.Trainer"), status=None):
    """What is observed of a pool and a group with these metadata."""
    pool = {"metadata": metadata("actors") | dict(of_pool), "spec": {"nodes": 1, "processesPerNode": 1}}
    group = {
        "metadata": metadata("trainer") | dict(of_group),
        "spec": {"pools": [{"name": "actors"}], "worker": dict([worker])},
        "status": status or {},
    }
    names = {("team", "actors"): ["actors"]}
    members = Membership(names, names, {("team", "actors"): [("trainer", ("actors",))]})
    return asyncio.run(observe_members(Client(pool, group), members, KEY))


def size(subject):
    return len(json.dumps(subject.metadata))


@pytest.mark.parametrize(
    "more",
    [
        {"labels": MANY},
        {"annotations": {"workergroups.dev/of-a-later-version": LARGE}},
        {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": LARGE}},
        {"managedFields": [{"fieldsV1": LARGE}]},
        {"ownerReferences": [{"name": LARGE}], "finalizers": [LARGE], "generateName": LARGE},
    ],
    ids=["labels", "our annotations", "annotations", "managed fields", "others"],
)
def test_of_pools_and_groups_only_what_the_operator_reads_is_kept(more):
    seen = observed(more, more)
    assert not seen.unreadable
    assert size(seen.pools[0]) < SMALL
    assert size(seen.groups[0]) < SMALL


def test_of_a_groups_restart_only_a_digest_is_kept():
    one, other = (observed(of_group={"annotations": {RESTARTED_AT: LARGE + end}}) for end in "ab")
    assert size(one.groups[0]) < SMALL
    assert one.launch_revisions["trainer"] != other.launch_revisions["trainer"]


@pytest.mark.parametrize(
    "more",
    [
        {"annotations": {RESTARTED_AT: LARGE}},
        {"annotations": {"workergroups.dev/wake-at": LARGE}},
        {"annotations": {"volcano.sh/large": LARGE}},
        {"labels": {key.replace("example.com", "kueue.x-k8s.io"): value for key, value in MANY.items()}},
    ],
    ids=["restarted-at", "wake-at", "annotation", "labels"],
)
def test_a_pool_with_too_much_that_the_operator_reads_or_passes_on_reports_it(more):
    (odd,) = observed(more).unreadable
    assert (odd.name, odd.explanation.reason) == ("actors", "InvalidSpec")
    (key, *_) = (key for field in more.values() for key in field)
    assert key.partition("/")[0] in odd.explanation.message
    assert f"may have {MAX_METADATA}" in odd.explanation.message
    assert len(json.dumps(odd.body)) < SMALL


def test_what_a_pool_passes_on_is_kept():
    queue, note = {QUEUE_LABEL: "research"}, {RESTARTED_AT: "now", "volcano.sh/note": "x" * 1_000}
    (pool,) = observed({"labels": queue | {"team": "a"}, "annotations": note}).pools
    assert (pool.metadata["labels"], pool.metadata["annotations"]) == (queue, note)


def test_of_a_group_that_cannot_be_read_the_conditions_are_kept_within_a_bound():
    condition = {"type": "Ready", "status": "True", "reason": "R", "message": LARGE}
    failures = [{"message": LARGE}]
    status = {"conditions": [condition] * 1_000, "ranks": {"large": LARGE}, "observedGeneration": 3}
    status |= {"failures": failures, "other": LARGE}
    (odd,) = observed(of_group={"labels": MANY}, worker=("class", 1), status=status).unreadable
    assert odd.body["status"]["observedGeneration"] == 3
    assert odd.body["status"]["conditions"] == [condition | {"message": LARGE[: lean.MAX_TEXT]}] * lean.MAX_ITEMS
    assert odd.body["status"]["failures"] == [{"message": LARGE[: lean.MAX_TEXT]}]
    assert odd.body["status"].keys() == {"conditions", "observedGeneration", "failures"}
    assert "labels" not in odd.body["metadata"]


CONTROLLER = {"kind": "RayCluster", "name": "actors", "uid": "u", "controller": True}
LABELS = {"workergroups.dev/cluster": "actors", "workergroups.dev/component": "worker", "ray.io/group": "g"}


def pod(*owners, **more):
    waiting = {"name": "ray-worker", "state": {"waiting": {"reason": "R", "message": LARGE}}}
    body = {
        "metadata": metadata("p") | {"labels": LABELS | MANY, "ownerReferences": [{"uid": LARGE}, *owners]},
        "spec": {
            "nodeName": "n",
            "nodeSelector": MANY,
            "containers": [{"name": "ray-worker", "env": LARGE, "resources": {"limits": {"nvidia.com/gpu": "4"}}}] * 9,
        },
        "status": {"phase": "Pending", "containerStatuses": [waiting], "other": LARGE},
    }
    body["metadata"]["annotations"] = {"workergroups.dev/template": "t", "workergroups.dev/other": LARGE}
    return body | more


def test_of_a_pod_only_what_the_steps_look_at_is_kept():
    kept = lean.lean_pod(pod(CONTROLLER))
    assert kept["metadata"]["labels"] == LABELS
    assert kept["metadata"]["annotations"] == {"workergroups.dev/template": "t"}
    assert kept["metadata"]["ownerReferences"] == [CONTROLLER]
    assert kept["spec"]["nodeName"] == "n"
    assert kept["spec"]["containers"][0] == {"name": "ray-worker", "resources": {"limits": {"nvidia.com/gpu": "4"}}}
    (container,) = kept["status"]["containerStatuses"]
    assert container["state"]["waiting"] == {"reason": "R", "message": LARGE[: lean.MAX_TEXT]}
    assert len(json.dumps(kept)) < 4 * SMALL


def test_of_a_pod_that_is_being_deleted_it_is_known_since_when():
    deleted = pod(CONTROLLER)
    deleted["metadata"] |= {"deletionTimestamp": "2026-01-01T12:00:35Z", "deletionGracePeriodSeconds": 35}
    assert deleted_at(lean.lean_pod(deleted)) == deleted_at(deleted) == datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_of_a_pod_that_cannot_be_the_clusters_only_its_identity_is_kept():
    kept = lean.lean_pod(pod())
    assert kept["metadata"]["name"] == "p"
    assert (kept["spec"], kept["status"]) == ({}, {})
    assert len(json.dumps(kept)) < 1_000


class Pods:
    """Has a pod, and one that exceeds a limit."""

    async def pages(self, *_, **__):
        yield Page([lean.lean_pod(pod(CONTROLLER))], refused=["large"])


def test_a_pod_that_exceeds_a_limit_does_not_count(caplog):
    (found,) = asyncio.run(observe._pods(Pods(), KEY))
    assert found["metadata"]["name"] == "p"
    assert "team/actors: pod large is ignored" in caplog.text
