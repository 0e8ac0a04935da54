"""Pools whose RayCluster waits in a queue of Kueue, or runs as it was admitted there."""

import asyncio
from datetime import timedelta

import pytest

from tests.unit.operator.make import (
    CREATED,
    NODE_GROUP,
    NOW,
    api_error,
    built,
    child,
    group,
    metadata,
    observed,
    of_kind,
    pod,
    pool,
    ready_pool,
    status_of,
    statuses,
    wanted,
)
from tests.unit.virtual_time import run
from workergroups_api.conditions import Explanation, find
from workergroups_operator.failures import Failures
from workergroups_operator.kueue import queueing
from workergroups_operator.observed import Queueing
from workergroups_operator.policy.queueing import GATHER_SECONDS, is_in_old_queue

QUEUE = "kueue.x-k8s.io/queue-name"
LABELS = {"workergroups.dev/cluster": "actors", QUEUE: "research"}


def queued_pool(name="actors", made=CREATED, **spec):
    return pool(name, **spec).model_copy(
        update={"metadata": metadata(name, labels={QUEUE: "research"}, creationTimestamp=made)}
    )


def workload(*conditions, active=True, **status):
    found = [dict(zip(("type", "status", "reason", "message"), each, strict=True)) for each in conditions]
    return {
        "metadata": {"name": "w"},
        "spec": {"queueName": "research", "active": active},
        "status": {"conditions": found, **status},
    }


ADMITTED = workload(
    ("QuotaReserved", "True", "QuotaReserved", ""),
    ("Admitted", "True", "Admitted", ""),
    admission={"clusterQueue": "g"},
)


def cluster(suspend, labels=LABELS, groups=(), **spec):
    more = {} if suspend is None else {"suspend": suspend}
    body = child("RayCluster", "actors", spec={"workerGroupSpecs": list(groups), **more, **spec})
    body["RayCluster", "actors"]["metadata"] |= {"labels": labels, "resourceVersion": "7"}
    return body


def node_group(of=None, name=NODE_GROUP, replicas=2, template="the present one"):
    if of is not None:
        template = built(observed(pools=(of,))).of(of)["metadata"]["annotations"]["workergroups.dev/template"]
    annotations = {"workergroups.dev/template": template}
    return {"groupName": name, "replicas": replicas, "template": {"metadata": {"annotations": annotations}}}


def kinds(seen, refused_pods=None):
    return [each["kind"] for each in wanted(seen, refused_pods)]


def conditions(subject, **parts):
    found = status_of(observed(pools=(subject,), **parts)).after
    return {each.type: each for each in found.conditions}, found


@pytest.mark.parametrize(
    ("suspend", "queue", "is_written"),
    [
        (True, Queueing(ADMITTED), True),
        (False, Queueing(ADMITTED), False),
        # Nobody knows whether Kueue has admitted it.
        (False, Queueing(unreadable="forbidden"), False),
        (True, Queueing(unreadable="forbidden"), True),
        # There is no Kueue: somebody has resumed it by hand.
        (False, Queueing(), True),
        (None, Queueing(), True),
    ],
)
def test_a_raycluster_is_written_unless_a_queue_runs_it_as_admitted(suspend, queue, is_written):
    seen = observed(pools=(queued_pool(),), children=cluster(suspend), queueing=queue)
    assert ("RayCluster" in kinds(seen)) is is_written
    assert "Secret" in kinds(seen)


def test_the_operator_never_writes_suspend_and_writes_only_what_it_has_seen():
    for suspend in (True, None):
        seen = observed(pools=(queued_pool(),), children=cluster(suspend))
        made = of_kind("RayCluster", wanted(seen))
        assert "suspend" not in made["spec"]
        assert made["metadata"]["resourceVersion"] == "7"
    plain = observed(pools=(pool(),), children=cluster(None, labels={"workergroups.dev/cluster": "actors"}))
    made = of_kind("RayCluster", wanted(plain))
    assert "resourceVersion" not in made["metadata"]


def test_a_queued_cluster_waits_a_moment_for_further_pools():
    just_now = NOW.isoformat().replace("+00:00", "Z")
    seen = observed(pools=(queued_pool(), queued_pool("late", just_now, clusterName="actors")), pods=())
    assert "RayCluster" not in kinds(seen)
    found = statuses(seen)
    assert found.requeue_after <= GATHER_SECONDS
    assert "further pools" in found.updates[0].ready.message
    ahead = (NOW + timedelta(hours=1)).isoformat()
    assert "RayCluster" in kinds(observed(pools=(queued_pool(made=ahead),)))
    assert "RayCluster" in kinds(observed(pools=(pool(),)))


def test_a_queue_is_asked_for_pods_that_are_refused_for_now_too():
    refused = {NODE_GROUP: Explanation("PodsRefused", "no such ServiceAccount")}
    for children in ({}, cluster(True)):
        made = wanted(observed(pools=(queued_pool(),), children=children, pods=()), refused)
        spec = of_kind("RayCluster", made)["spec"]
        assert [each["groupName"] for each in spec["workerGroupSpecs"]] == [NODE_GROUP]
    made = wanted(observed(pools=(pool(),), pods=()), refused)
    assert of_kind("RayCluster", made)["spec"]["workerGroupSpecs"] == []


PENDING = ("QuotaReserved", "False", "WaitingForQuota", "insufficient unused quota")
EVICTED = ("Evicted", "True", "Preempted", "Preempted to accommodate another")


@pytest.mark.parametrize(
    ("queue", "reason", "words"),
    [
        (Queueing(), "Queued", "Kueue has no Workload for it yet"),
        (Queueing(unreadable="workloads is forbidden"), "Queued", "cannot read Workloads: workloads is forbidden"),
        (Queueing(workload()), "Queued", "waits in queue research as Workload w"),
        (Queueing(workload(PENDING), 3), "Queued", "w; place 3 in its ClusterQueue; Kueue: WaitingForQuota: insuff"),
        (
            Queueing(workload(EVICTED, PENDING)),
            "Evicted",
            "(Preempted: Preempted to accommodate another); it waits for",
        ),
        (Queueing(workload(EVICTED, active=False)), "Evicted", "set spec.active of Workload w to true"),
        (
            Queueing(workload(("QuotaReserved", "True", "x", ""), admissionChecks=[{"name": "c", "state": "Retry"}])),
            "Queued",
            "Kueue: c is Retry",
        ),
        (Queueing(ADMITTED), "Queued", "waits in queue research as Workload w"),
    ],
)
def test_a_pool_in_a_queue_says_what_the_queue_says_and_has_no_deadline(queue, reason, words):
    found, status = conditions(queued_pool(), pods=(), children=cluster(True), queueing=queue)
    assert (found["Admitted"].status, found["Admitted"].reason) == ("False", reason)
    assert words in found["Admitted"].message
    assert (found["Ready"].reason, found["Ready"].message) == (reason, found["Admitted"].message)
    assert (found["Progressing"].status, found["Progressing"].reason) == ("Unknown", reason)
    assert (found["Failed"].status, found["Stalled"].status) == ("False", "False")
    assert "kubectl patch" not in found["ClusterReady"].message
    assert status.deadline is None


def test_what_kueue_refuses_while_the_cluster_waits_is_reported():
    why = Explanation("ApplyFailed", "WorkloadPriorityClass cannot be removed from a workload")
    seen = observed(pools=(queued_pool(),), pods=(), children=cluster(True))
    after = status_of(seen, failures=Failures({"RayCluster": why})).after
    assert find(after.conditions, "ClusterReady").message == why.message
    assert find(after.conditions, "Ready").reason == "Queued"


def test_the_operator_looks_again_at_a_queue_that_no_event_reports():
    seen = observed(pools=(queued_pool(),), pods=(), children=cluster(True), queueing=Queueing(workload(PENDING)))
    assert statuses(seen).requeue_after <= 60.0


def test_a_group_of_a_queued_pool_has_no_deadline_either():
    seen = observed(pools=(queued_pool(),), groups=(group(),), pods=(), children=cluster(True))
    after = status_of(seen).after
    ready, progressing = (find(after.conditions, type_) for type_ in ("Ready", "Progressing"))
    assert (ready.reason, progressing.status, after.deadline) == ("PoolQueued", "Unknown", None)


def test_a_workload_that_ended_is_not_waited_for():
    queue = Queueing(workload(("Finished", "True", "OutOfSync", "out of sync")))
    found, _ = conditions(queued_pool(), pods=(), children=cluster(True), queueing=queue)
    assert found["Admitted"].reason == "AdmissionEnded"
    assert "delete the RayCluster" in found["Admitted"].message
    assert found["Progressing"].status == "False"


@pytest.mark.parametrize(
    ("suspend", "queue", "reason"),
    [(False, Queueing(ADMITTED), "Admitted"), (None, Queueing(), "NotQueued"), (False, Queueing(), "NotQueued")],
)
def test_a_pool_that_may_run_is_admitted(suspend, queue, reason):
    mine = queued_pool()
    found, _ = conditions(mine, children=cluster(suspend, groups=[node_group(mine)]), queueing=queue)
    assert (found["Admitted"].status, found["Admitted"].reason) == ("True", reason)


@pytest.mark.parametrize("suspend", [None, True])
def test_without_a_queue_there_is_no_such_condition(suspend):
    found, _ = conditions(pool(), pods=(), children=cluster(suspend, labels={}))
    assert "Admitted" not in found


def test_kueue_may_manage_clusters_that_name_no_queue():
    found, _ = conditions(pool(), pods=(), children=cluster(True, labels={}), queueing=Queueing(workload(PENDING)))
    assert found["Admitted"].reason == "Queued"


def test_a_pool_that_comes_after_the_admission_is_refused():
    first, second = queued_pool(), queued_pool("critics", clusterName="actors")
    seen = observed(
        pools=(first, second), children=cluster(False, groups=[node_group(first)]), queueing=Queueing(ADMITTED)
    )
    of_first, of_second = statuses(seen).updates
    assert find(of_first.after.conditions, "Admitted").status == "True"
    assert of_second.ready.reason == "AdmittedWithoutPool"
    assert "its own spec.clusterName" in of_second.ready.message
    assert find(of_second.after.conditions, "Progressing").status == "False"
    assert find(of_second.after.conditions, "Stalled").reason == "AdmittedWithoutPool"


@pytest.mark.parametrize(
    ("labels", "groups", "words"),
    [
        ({QUEUE: "another"}, lambda mine: [node_group(mine)], f"{QUEUE}=research waits"),
        (LABELS, lambda mine: [node_group(mine, replicas=1)], "spec.nodes: 2 waits, 1 were admitted"),
        (LABELS, lambda _: [node_group()], "the change of the pods' template waits"),
        (LABELS, lambda mine: [node_group(mine), node_group(name="gone-1")], "a deleted pool, gone-1, still run"),
    ],
)
def test_what_an_admitted_cluster_does_not_take_is_reported(labels, groups, words):
    mine = queued_pool()
    children = cluster(False, labels=labels, groups=groups(mine))
    found, _ = conditions(mine, children=children, queueing=Queueing(ADMITTED))
    assert (found["UpToDate"].reason, found["UpToDate"].status) == ("ChangesWait", "False")
    assert words in found["UpToDate"].message


def test_a_pool_that_grew_says_that_the_queue_admitted_less():
    mine = queued_pool()
    children = cluster(False, groups=[node_group(mine, replicas=1)])
    found, _ = conditions(mine, children=children, queueing=Queueing(ADMITTED))
    assert (found["NodesReady"].reason, found["Ready"].reason) == ("ChangesWait", "ChangesWait")
    assert "has admitted 1 of 2 nodes" in found["NodesReady"].message


def test_a_younger_pool_in_another_queue_is_told_so():
    other = queued_pool("critics", clusterName="actors")
    seen = observed(pools=(ready_pool(), other))
    assert find(statuses(seen).updates[1].after.conditions, "UpToDate").reason == "LabelIgnored"


class FakeKube:
    """Answers by kind's API version; an exception is raised, and for "never" there is no answer."""

    def __init__(self, **answers):
        self.answers = answers
        self.asked = []

    async def latest(self, kind, namespace, make, moment, label_selector):
        self.asked.append((kind.api_version, namespace, label_selector))
        return max(map(make, await self._answer(kind, api_error(404))), key=moment, default=None)

    async def get(self, kind, namespace, name, subresource):
        self.asked.append((kind.api_version, namespace, name, subresource))
        return await self._answer(kind, None)

    async def _answer(self, kind, missing):
        found = self.answers.get(f"{kind.plural}_{kind.version}", missing)
        if found == "never":
            await asyncio.Event().wait()
        if isinstance(found, Exception):
            raise found
        return found


def asked(client, body):
    return run(queueing(client, "team", body["RayCluster", "actors"]))


def test_nobody_asks_kueue_about_a_cluster_that_is_not_queued():
    client = FakeKube()
    assert asked(client, cluster(None, labels={})) == Queueing()
    assert client.asked == []


def test_the_workload_of_the_raycluster_and_its_place():
    pending = workload(PENDING)
    places = {"items": [{"metadata": {"name": "w"}, "positionInClusterQueue": 2}]}
    client = FakeKube(workloads_v1beta2=[pending], localqueues_v1beta2=places)
    assert asked(client, cluster(True)) == Queueing(pending, 3)
    assert client.asked == [
        ("kueue.x-k8s.io/v1beta2", "team", "kueue.x-k8s.io/job-uid=uid-RayCluster"),
        ("visibility.kueue.x-k8s.io/v1beta2", "team", "research", "pendingworkloads"),
    ]


def test_an_older_kueue_and_no_place():
    pending = workload(PENDING)
    client = FakeKube(workloads_v1beta1=[pending], localqueues_v1beta2=api_error(403))
    assert asked(client, cluster(True)) == Queueing(pending)


def test_no_reconcile_waits_for_a_kueue_that_does_not_answer():
    pending = workload(PENDING)
    assert asked(FakeKube(workloads_v1beta2=[pending], localqueues_v1beta2="never"), cluster(True)) == Queueing(pending)
    assert asked(FakeKube(workloads_v1beta2="never"), cluster(True)).unreadable


def test_no_kueue_and_no_rights():
    assert asked(FakeKube(), cluster(True)) == Queueing()
    assert asked(FakeKube(workloads_v1beta2=api_error(403)), cluster(True)).unreadable


WAS_EVICTED = workload(("QuotaReserved", "False", "Inadmissible", ""), ("Evicted", "True", "ClusterQueueStopped", ""))
MOVED = LABELS | {QUEUE: "production"}


@pytest.mark.parametrize(
    ("children", "found", "pods", "is_old"),
    [
        (cluster(True, MOVED), WAS_EVICTED, (), True),
        (cluster(True, MOVED), WAS_EVICTED, (pod("agent"),), True),
        (cluster(True, MOVED), WAS_EVICTED, (pod("head"),), False),
        (cluster(True), WAS_EVICTED, (), False),
        (cluster(False, MOVED), WAS_EVICTED, (), False),
        (cluster(True, MOVED), workload(("QuotaReserved", "False", "Pending", "")), (), False),
        (cluster(True, MOVED), None, (), False),
        ({}, WAS_EVICTED, (), False),
    ],
    ids=[
        "moved",
        "the agent stays",
        "pods left",
        "the same queue",
        "runs",
        "never admitted",
        "no workload",
        "no cluster",
    ],
)
def test_a_cluster_that_was_evicted_leaves_its_old_queue_by_a_new_one(children, found, pods, is_old):
    seen = observed(pools=(queued_pool(),), children=children, pods=pods, queueing=Queueing(found))
    assert is_in_old_queue(seen) is is_old
