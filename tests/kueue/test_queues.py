"""Pools in the queues of the real Kueue: they wait, are admitted, preempted, and come back."""

import asyncio

import pytest

from tests.api.kueue_contract import QUEUE
from tests.api.test_kueue import templates, unchanged
from tests.kueue.queues import BLOCK
from tests.simulation.api import eventually
from tests.simulation.scene import condition, pool
from workergroups_api.manifest import POD, RAY_CLUSTER, RESOURCE_POOL, WORKER_GROUP
from workergroups_api.names import POOL_LABEL

PRIORITY = "kueue.x-k8s.io/priority-class"
ON_GPUS = {"accelerator": {"vendor": "nvidia"}, "processesPerNode": 2}


async def queued_pool(scene, name="p", queue="research", priority=None, **spec):
    """A pool of one node with two GPUs."""
    body = pool(scene.namespace, name, **ON_GPUS | spec)
    body["metadata"]["labels"] = {QUEUE: queue} | ({PRIORITY: priority} if priority else {})
    return await scene.api.create(body)


async def admitted(scene, name="p", **spec):
    """A pool and a group on a cluster that Kueue has admitted."""
    await queued_pool(scene, name, **spec)
    await scene.group(name)
    await scene.ready(RESOURCE_POOL, name, seconds=40)
    return await scene.ready(WORKER_GROUP, name, seconds=20)


def flavors(cluster):
    """The flavor on whose nodes each pod template is to run."""
    return [each["spec"].get("nodeSelector", {}).get("cloud.example/flavor") for each in templates(cluster)]


async def says(scene, words, name="p", seconds=20):
    async def are_said():
        return words in condition(await scene.get(RESOURCE_POOL, name), "Admitted").get("message", "")

    await eventually(f"{words!r} in the message of Admitted", are_said, seconds)


async def test_a_pool_waits_for_quota_with_kueues_words_and_without_a_deadline(scene, queues):
    spot = await queues.flavor("spot")
    await queues.queue("research", {spot: 1})
    await queued_pool(scene)
    await scene.group("p")
    await queues.suspended("p")
    await says(scene, "insufficient")
    found = await scene.until(RESOURCE_POOL, "p", "Ready", "False", "Queued")
    assert "queue research" in condition(found, "Admitted")["message"]
    assert condition(found, "Progressing")["status"] == "Unknown"
    assert "deadline" not in found["status"]
    group = await scene.until(WORKER_GROUP, "p", "Ready", "False", "PoolQueued")
    assert "deadline" not in group["status"]
    await unchanged(scene)


async def test_pools_that_wait_say_their_places_in_the_queue(scene, queues):
    spot = await queues.flavor("spot")
    research = await queues.queue("research", {spot: 1})
    await queued_pool(scene, "first")
    await says(scene, "place 1 in its ClusterQueue", "first")
    await queued_pool(scene, "second")
    await says(scene, "place 2 in its ClusterQueue", "second")
    await queues.set_gpus(research, {spot: 2})
    await scene.ready(RESOURCE_POOL, "first", seconds=40)
    await says(scene, "place 1 in its ClusterQueue", "second", seconds=90)


async def test_a_pool_waits_for_an_admission_check_and_runs_where_the_check_says(scene, queues):
    spot, check = await queues.flavor("spot"), await queues.check("budget")
    await queues.queue("research", {spot: 2}, admissionChecksStrategy={"admissionChecks": [{"name": check}]})
    await queued_pool(scene)
    await scene.group("p")
    await says(scene, f"{check} is Pending")
    await queues.answer(check, "p", "Ready", {"cloud.example/booked": "yes"})
    await scene.ready(RESOURCE_POOL, "p", seconds=40)
    await scene.ready(WORKER_GROUP, "p", seconds=20)
    cluster = await unchanged(scene)
    assert [each["spec"]["nodeSelector"]["cloud.example/booked"] for each in templates(cluster)] == ["yes", "yes"]
    assert await queues.evictions() == 0


async def test_a_pool_that_an_admission_check_rejects_says_how_to_queue_it_again(scene, queues):
    spot, check = await queues.flavor("spot"), await queues.check("budget")
    await queues.queue("research", {spot: 2}, admissionChecksStrategy={"admissionChecks": [{"name": check}]})
    await queued_pool(scene)
    await queues.answer(check, "p", "Rejected")
    found = await scene.until(RESOURCE_POOL, "p", "Ready", "False", "Evicted")
    assert "to queue it again, set spec.active of Workload" in condition(found, "Admitted")["message"]


async def test_a_pool_in_a_queue_that_does_not_exist_says_so(scene):
    await queued_pool(scene, queue="nowhere")
    await says(scene, "nowhere")
    await scene.until(RESOURCE_POOL, "p", "Ready", "False", "Queued")


async def test_quota_that_comes_admits_it_onto_the_flavors_nodes(scene, queues):
    spot = await queues.flavor("spot", toleration=True)
    research = await queues.queue("research", {spot: 1})
    await queued_pool(scene)
    await scene.group("p")
    await says(scene, "insufficient")
    await queues.set_gpus(research, {spot: 2})
    found = await scene.ready(RESOURCE_POOL, "p", seconds=40)
    await scene.ready(WORKER_GROUP, "p", seconds=20)
    assert condition(found, "Admitted")["message"] == f"by ClusterQueue {research}"
    assert condition(found, "UpToDate")["status"] == "True"
    cluster = await unchanged(scene)
    assert flavors(cluster) == ["spot", "spot"]
    assert all(
        {"key": "cloud.example/spot", "operator": "Exists", "effect": "NoSchedule"} in each["spec"]["tolerations"]
        for each in templates(cluster)
    )
    await scene.stop_operator()
    scene.start_operator()
    assert flavors(await unchanged(scene)) == ["spot", "spot"]
    assert await queues.evictions() == 0


@pytest.mark.timeout(150)
async def test_a_preempted_pool_says_so_takes_what_was_asked_meanwhile_and_comes_back(scene, queues):
    spot = await queues.flavor("spot")
    await queues.queue("research", {spot: 2}, preemption={"withinClusterQueue": "LowerPriority"})
    urgent = await queues.priority("urgent", 1000)
    before = await admitted(scene)
    await scene.edit(RESOURCE_POOL, "p", {"podTemplate": {"metadata": {"labels": {"team": "rl"}}}})
    found = await scene.until(RESOURCE_POOL, "p", "UpToDate", "False", "ChangesWait")
    assert condition(found)["status"] == "True"
    await unchanged(scene)

    await queued_pool(scene, "q", priority=urgent)
    found = await scene.until(RESOURCE_POOL, "p", "Admitted", "False", "Evicted", seconds=30)
    assert "Preempted" in condition(found, "Admitted")["message"]
    assert condition(found, "Progressing")["status"] == "Unknown"
    await scene.until(WORKER_GROUP, "p", "Ready", "False", "PoolQueued")
    await scene.ready(RESOURCE_POOL, "q", seconds=40)

    await scene.delete(RESOURCE_POOL, "q")
    await scene.ready(RESOURCE_POOL, "p", seconds=60)
    after = await scene.ready(WORKER_GROUP, "p", seconds=20)
    assert after["status"]["incarnation"] > before["status"]["incarnation"]
    assert condition(await scene.get(RESOURCE_POOL, "p"), "UpToDate")["status"] == "True"
    labels = templates(await unchanged(scene))[1]["metadata"]["labels"]
    assert labels["team"] == "rl"


IN_ONE_BLOCK = {"podTemplate": {"metadata": {"annotations": {"kueue.x-k8s.io/podset-required-topology": BLOCK}}}}


async def nodes_of_workers(scene, name):
    """The nodes on which the workers of a pool are, each of which has its block in its name."""
    pods = await scene.api.list(POD, scene.namespace)
    of_pool = [each for each in pods if each["metadata"].get("labels", {}).get(POOL_LABEL) == name]
    return sorted(each["spec"]["nodeName"].removeprefix(f"{scene.namespace}-blocks-") for each in of_pool)


@pytest.mark.timeout(150)
async def test_all_nodes_of_a_pool_are_in_one_block_of_the_topology(scene, queues):
    blocks = await queues.topology({"small": 1, "large": 2})
    await queues.queue("research", {blocks: 8})
    await admitted(scene, nodes=2, **IN_ONE_BLOCK)
    assert await nodes_of_workers(scene, "p") == ["large-0", "large-1"]
    await unchanged(scene)
    await queued_pool(scene, "q", nodes=2, **IN_ONE_BLOCK)
    await says(scene, "topology", "q")
    await scene.delete(RESOURCE_POOL, "p")
    await scene.ready(RESOURCE_POOL, "q", seconds=40)
    assert await nodes_of_workers(scene, "q") == ["large-0", "large-1"]
    assert await queues.evictions() == 0


async def one_admitted_and_one_waiting(scene, queues):
    """Pool p uses all quota, and pool q waits for it."""
    spot = await queues.flavor("spot")
    await queues.queue("research", {spot: 2})
    await admitted(scene)
    await queued_pool(scene, "q")
    await says(scene, "insufficient unused quota", "q")


async def test_quota_that_a_pool_gives_back_is_the_next_ones(scene, queues):
    await one_admitted_and_one_waiting(scene, queues)
    await scene.delete(RESOURCE_POOL, "p")
    await scene.ready(RESOURCE_POOL, "q", seconds=40)


async def test_a_suspended_pool_gives_its_quota_back(scene, queues):
    await one_admitted_and_one_waiting(scene, queues)
    await scene.edit(RESOURCE_POOL, "p", {"suspend": True})
    await scene.ready(RESOURCE_POOL, "q", seconds=40)
    await scene.edit(RESOURCE_POOL, "p", {"suspend": False})
    await says(scene, "insufficient unused quota")


async def test_where_the_first_flavor_is_used_up_the_second_is_taken(scene, queues):
    spot, reserved = await queues.flavor("spot"), await queues.flavor("reserved")
    await queues.queue("research", {spot: 2, reserved: 2})
    await admitted(scene)
    await admitted(scene, "q")
    assert [flavors(await unchanged(scene, name))[1] for name in ("p", "q")] == ["spot", "reserved"]
    assert await queues.evictions() == 0


@pytest.mark.timeout(150)
async def test_what_is_borrowed_from_a_cohort_is_given_back_to_who_lent_it(scene, queues):
    spot = await queues.flavor("spot")
    await queues.queue("research", {spot: 0}, "all")
    await queues.queue("production", {spot: 2}, "all", preemption={"reclaimWithinCohort": "Any"})
    await admitted(scene)
    await admitted(scene, "q", queue="production")
    found = await scene.until(RESOURCE_POOL, "p", "Admitted", "False", "Evicted", seconds=30)
    assert "reclamation" in condition(found, "Admitted")["message"]
    await scene.until(WORKER_GROUP, "p", "Ready", "False", "PoolQueued")
    await scene.delete(RESOURCE_POOL, "q")
    await scene.ready(RESOURCE_POOL, "p", seconds=60)
    await scene.ready(WORKER_GROUP, "p", seconds=20)


async def test_a_second_pool_on_an_admitted_cluster_is_refused_and_harms_nothing(scene, queues):
    spot = await queues.flavor("spot")
    await queues.queue("research", {spot: 8})
    await admitted(scene)
    await queued_pool(scene, "q", clusterName="p")
    found = await scene.until(RESOURCE_POOL, "q", "Ready", "False", "AdmittedWithoutPool", seconds=20)
    assert "its own spec.clusterName" in condition(found)["message"]
    assert len((await unchanged(scene))["spec"]["workerGroupSpecs"]) == 1
    await scene.delete(RAY_CLUSTER, "p")
    for name in ("p", "q"):
        await scene.ready(RESOURCE_POOL, name, seconds=60)


async def test_pools_that_are_created_together_are_admitted_together(scene, queues):
    spot = await queues.flavor("spot")
    await queues.queue("research", {spot: 4})
    await queued_pool(scene, "p")
    await asyncio.sleep(0.5)
    await queued_pool(scene, "q", clusterName="p")
    for name in ("p", "q"):
        await scene.ready(RESOURCE_POOL, name, seconds=60)
    assert await queues.evictions() == 0


@pytest.mark.timeout(150)
async def test_another_queue_waits_until_the_cluster_is_suspended(scene, queues):
    spot = await queues.flavor("spot")
    research = await queues.queue("research", {spot: 2})
    await queues.queue("production", {spot: 2})
    await admitted(scene)
    await scene.api.merge(RESOURCE_POOL, scene.namespace, "p", {"metadata": {"labels": {QUEUE: "production"}}})
    found = await scene.until(RESOURCE_POOL, "p", "UpToDate", "False", "ChangesWait")
    assert f"{QUEUE}=production waits" in condition(found, "UpToDate")["message"]
    assert (await unchanged(scene))["metadata"]["labels"][QUEUE] == "research"
    await queues.stop(research)

    async def is_in_the_other_queue():
        return (await scene.get(RAY_CLUSTER, "p"))["metadata"]["labels"][QUEUE] == "production"

    await eventually("the other queue", is_in_the_other_queue, 60)
    await scene.ready(RESOURCE_POOL, "p", seconds=60)
