"""Deleted, edited, recreated: what runs follows, and nothing of an earlier life is ever used."""

import asyncio
import contextlib

import pytest

from tests.simulation import oracles
from tests.simulation.api import eventually
from tests.simulation.faults import Delay, Rule
from tests.simulation.monitor import SLACK_SECONDS
from tests.simulation.scene import NEVER_RESTARTED, condition
from workergroups_api import manifest as kinds
from workergroups_api.manifest import RESOURCE_POOL, WORKER_GROUP
from workergroups_api.names import RESTART_ANNOTATION, RESTARTED_AT_ANNOTATION


async def ready(scene, **spec):
    await scene.pool("p")
    await scene.group("p", **spec)
    await scene.ready(RESOURCE_POOL, "p")
    return await scene.ready(WORKER_GROUP, "p")


async def new_incarnation(scene, old):
    number = old["status"]["incarnation"] + 1
    found = await scene.until(WORKER_GROUP, "p", "Ready", "True")

    async def is_new():
        nonlocal found
        found = await scene.get(WORKER_GROUP, "p")
        return found["status"]["incarnation"] == number and condition(found)["status"] == "True"

    await eventually("a new incarnation", is_new)
    ranks = scene.world.live_ranks("p")
    assert {rank.name.incarnation for rank in ranks} == {number}
    assert condition(found, "UpToDate")["status"] == "True"
    return ranks[0].launch


async def test_other_kwargs_are_a_new_incarnation(scene):
    old = await ready(scene)
    await scene.edit(WORKER_GROUP, "p", {"worker": {"class": "train.Trainer", "kwargs": {"rate": 5}}})
    launch = await new_incarnation(scene, old)
    assert launch.init_kwargs == {"rate": 5}


async def test_after_the_death_of_a_rank_all_ranks_are_recreated(scene):
    old = await ready(scene)
    scene.world.kill_rank("p", scene.world.live_ranks("p")[0])
    await new_incarnation(scene, old)
    (failure,) = (await scene.get(WORKER_GROUP, "p"))["status"]["failures"]
    assert (failure["reason"], failure["rank"]) == ("ProcessDied", 0)


async def test_after_the_death_of_a_rank_only_that_rank_is_recreated_if_the_user_wants_that(scene):
    old = await ready(scene, failurePolicy={"restart": "Rank", "backoffSeconds": 0})
    first, second = scene.world.live_ranks("p")
    scene.world.failing[second.launch.class_path] = "RuntimeError: not yet"
    scene.world.kill_rank("p", second)
    found = await scene.until(WORKER_GROUP, "p", "Failed", "True", "ConstructorFailed")
    assert (found["status"]["readyRanks"], scene.world.live_ranks("p")) == (1, [first])
    scene.world.failing.clear()
    await scene.edit(WORKER_GROUP, "p", {"failurePolicy": {"maxRestarts": 4}})
    await restarted(scene, 4)
    new = await scene.ready(WORKER_GROUP, "p")
    for same in ("incarnation", "revision", "bundles"):
        assert new["status"][same] == old["status"][same]
    assert new["status"]["births"] == {"1": 4}
    assert [(each["rank"], each.get("birth")) for each in new["status"]["failures"]] == [
        (1, 3),
        (1, 2),
        (1, 1),
        (1, None),
    ]
    alive = {rank.name.rank: rank for rank in scene.world.live_ranks("p")}
    assert (alive[0], alive[1].name.birth, alive[1].pod) == (first, 4, second.pod)


async def test_after_the_loss_of_a_node_its_ranks_are_recreated_alone(scene):
    await scene.pool("p", nodes=2, processesPerNode=1)
    await scene.group("p", failurePolicy={"restart": "Rank"})
    old = await scene.ready(WORKER_GROUP, "p", seconds=20)
    first = next(rank for rank in scene.world.live_ranks("p") if rank.name.rank == 0)
    pods = [pod for pod in scene.world.pods("p", "worker") if pod["metadata"]["name"] != first.pod]
    await scene.world.delete_pod(*pods)
    await restarted(scene, 1)
    new = await scene.ready(WORKER_GROUP, "p", seconds=20)
    assert new["status"]["incarnation"] == old["status"]["incarnation"]
    alive = {rank.name.rank: rank for rank in scene.world.live_ranks("p")}
    assert (alive[0], alive[1].name.birth, new["status"]["restarts"].get("recent")) == (first, 1, [])


async def test_after_a_call_that_hangs_all_ranks_are_recreated(scene):
    old = await ready(scene)
    rank = scene.world.live_ranks("p")[1]
    scene.world.gcs["p"].hang(rank)
    await new_incarnation(scene, old)
    (failure,) = (await scene.get(WORKER_GROUP, "p"))["status"]["failures"]
    assert (failure["reason"], failure["rank"], failure["pod"]) == ("Hung", 1, rank.pod)
    assert failure["node"]


async def test_a_call_that_hangs_is_told_until_it_returns_if_nothing_may_be_restarted(scene):
    old = await ready(scene, **NEVER_RESTARTED)
    gcs = scene.world.gcs["p"]
    gcs.hang(scene.world.live_ranks("p")[1])
    found = await scene.until(WORKER_GROUP, "p", "Ready", "False", "Hung")
    assert found["status"]["ranks"]["hang"]["suspects"] == "1"

    async def is_told():
        events = await scene.api.list(kinds.EVENT, scene.namespace)
        return any(event["reason"] == "Hung" and "suspect: rank 1" in event["note"] for event in events)

    await eventually("an event that names the suspect", is_told, 5)
    gcs.hangs.clear()
    new = await scene.until(WORKER_GROUP, "p", "Ready", "True", "RanksReady")
    assert new["status"]["incarnation"] == old["status"]["incarnation"]
    assert "hang" not in new["status"]["ranks"]


async def test_the_budget_of_restarts_outlives_the_operator(scene):
    await ready(scene)
    await scene.edit(WORKER_GROUP, "p", {"failurePolicy": {"maxRestarts": 2, "backoffSeconds": 1}})
    for number in (1, 2):
        scene.world.kill_rank("p", scene.world.live_ranks("p")[0])
        scene.kill_operator()
        scene.start_operator()
        await restarted(scene, number)
    scene.world.kill_rank("p", scene.world.live_ranks("p")[0])
    await scene.until(WORKER_GROUP, "p", "Failed", "True", "ProcessDied")
    await scene.edit(WORKER_GROUP, "p", {"failurePolicy": {"maxRestarts": 3}})
    await restarted(scene, 3)


async def restarted(scene, number):
    """Wait until the group has been restarted that often, and is ready."""

    async def is_so():
        status = (await scene.get(WORKER_GROUP, "p"))["status"]
        return status.get("restarts", {}).get("count") == number and status.get("readyRanks") == 2

    await eventually(f"restart {number}", is_so, 60)


async def test_a_dead_rank_is_recreated_when_the_user_asks_for_it(scene):
    old = await ready(scene, **NEVER_RESTARTED)
    scene.world.kill_rank("p", scene.world.live_ranks("p")[0])
    await scene.until(WORKER_GROUP, "p", "Ready", "False")
    restart = {"metadata": {"annotations": {RESTARTED_AT_ANNOTATION: "now"}}}
    await scene.api.merge(WORKER_GROUP, scene.namespace, "p", restart)
    await new_incarnation(scene, old)


async def test_other_code_is_a_new_incarnation(scene):
    await scene.code("code", train="VERSION = 1")
    await scene.pool("p")
    await scene.group("p", code={"configMap": {"name": "code"}})
    old = await scene.ready(WORKER_GROUP, "p")
    await scene.code("code", train="VERSION = 2")
    await new_incarnation(scene, old)


async def test_code_that_is_gone_ends_no_ranks(scene):
    await scene.code("code", train="VERSION = 1")
    await scene.pool("p")
    await scene.group("p", code={"configMap": {"name": "code"}})
    old = await scene.ready(WORKER_GROUP, "p")
    await scene.delete(kinds.CONFIG_MAP, "code")
    await scene.until(WORKER_GROUP, "p", "UpToDate", "Unknown")
    new = await scene.get(WORKER_GROUP, "p")
    assert (condition(new)["status"], new["status"]["incarnation"]) == ("True", old["status"]["incarnation"])


CHILDREN = [
    (kinds.CONFIG_MAP, "p-plan"),
    (kinds.SERVICE_ACCOUNT, "p-agent"),
    (kinds.ROLE, "p-agent"),
    (kinds.ROLE_BINDING, "p-agent"),
    (kinds.LEASE, "p-agent"),
    (kinds.NETWORK_POLICY, "p-pods"),
    (kinds.DEPLOYMENT, "p-agent"),
]


@pytest.mark.parametrize(("kind", "name"), CHILDREN, ids=lambda value: getattr(value, "kind", None))
async def test_a_deleted_child_is_restored_and_works(scene, kind, name):
    old = await ready(scene, **NEVER_RESTARTED)
    uid = (await scene.get(kind, name))["metadata"]["uid"]
    await scene.delete(kind, name)

    async def is_back():
        found = await scene.api.get(kind, scene.namespace, name)
        return found is not None and found["metadata"]["uid"] != uid

    await eventually(f"{kind.kind} {name} to come back", is_back, 5)
    await asyncio.sleep(1)
    scene.world.kill_rank("p", scene.world.live_ranks("p")[0])
    await scene.until(WORKER_GROUP, "p", "Ready", "False", "ProcessDied", seconds=8)
    await scene.edit(WORKER_GROUP, "p", {"worker": {"class": "train.Other"}})
    await new_incarnation(scene, old)


async def test_a_deleted_token_is_a_new_cluster_that_says_why(scene):
    old = await ready(scene)
    token = scene.world.gcs["p"].token
    await scene.delete(kinds.SECRET, "p")
    said = await scene.until(RESOURCE_POOL, "p", "Ready", "False", seconds=5 + SLACK_SECONDS)
    assert "token" in condition(said)["message"]
    said = await scene.until(RESOURCE_POOL, "p", "Ready", "False", "AgentStarting", seconds=20)
    assert "being restarted, since Secret p with Ray's token was deleted" in condition(said)["message"]
    new = await scene.ready(WORKER_GROUP, "p", seconds=20)
    assert new["status"]["incarnation"] > old["status"]["incarnation"]
    assert scene.world.gcs["p"].token != token
    assert RESTART_ANNOTATION not in (await scene.get(kinds.LEASE, "p-agent"))["metadata"]["annotations"]


async def test_a_lease_that_is_recreated_at_once_is_renewed_at_once(scene):
    await ready(scene)
    old = await scene.get(kinds.LEASE, "p-agent")
    kept = {key: old["metadata"][key] for key in ("name", "namespace", "labels", "ownerReferences")}
    await scene.delete(kinds.LEASE, "p-agent")
    await scene.api.create({"apiVersion": old["apiVersion"], "kind": old["kind"], "metadata": kept})

    async def is_renewed():
        return (await scene.get(kinds.LEASE, "p-agent"))["spec"].get("renewTime")

    await eventually("a renewal", is_renewed, 5 + SLACK_SECONDS)
    assert condition(await scene.get(WORKER_GROUP, "p"))["status"] == "True"


async def test_a_deleted_ray_cluster_is_recreated(scene):
    old = await ready(scene)
    with scene.world.machines.full():
        await scene.delete(kinds.RAY_CLUSTER, "p")
        await scene.until(WORKER_GROUP, "p", "Ready", "False", seconds=5 + SLACK_SECONDS)
    new = await scene.ready(WORKER_GROUP, "p", seconds=20)
    assert new["status"]["incarnation"] == old["status"]["incarnation"] + 1


async def test_a_pool_recreated_while_pods_run_gets_none_of_the_old_ones(scene):
    await ready(scene)
    scene.world.machines.termination_seconds = 2.0
    old = {pod["metadata"]["uid"] for pod in scene.world.machines.pods.values()}
    token = scene.world.gcs["p"].token
    await scene.delete(RESOURCE_POOL, "p")
    await scene.pool("p", image="example.test/worker:new")
    await scene.ready(RESOURCE_POOL, "p", seconds=25)
    running = scene.world.machines.running.values()
    assert not {each.pod["metadata"]["uid"] for each in running} & old
    assert {
        container["image"]
        for each in running
        for container in each.pod["spec"]["containers"]
        if container["name"] != "reporter"  # it never runs a user's image
    } == {"example.test/worker:new"}
    assert scene.world.gcs["p"].token != token


async def test_a_field_that_is_removed_from_the_template_goes_from_the_cluster(scene):
    await scene.pool("p", podTemplate={"spec": {"priority": None, "hostname": "h"}, "metadata": {"labels": {"a": "b"}}})
    await scene.ready(RESOURCE_POOL, "p")
    await scene.edit(RESOURCE_POOL, "p", {"podTemplate": None})
    await scene.until(RESOURCE_POOL, "p", "UpToDate", "False", "OldTemplate")
    await scene.annotate(RESOURCE_POOL, "p", RESTARTED_AT_ANNOTATION, "now")

    async def is_gone():
        cluster = await scene.get(kinds.RAY_CLUSTER, "p")
        (group,) = cluster["spec"]["workerGroupSpecs"]
        return "hostname" not in group["template"]["spec"] and "a" not in group["template"]["metadata"]["labels"]

    await eventually("the field to go", is_gone, 5)
    await scene.until(RESOURCE_POOL, "p", "UpToDate", "True", seconds=20)


async def test_a_pool_recreated_in_a_gap_of_the_watch(scene):
    """kopf keeps both pools in its index."""
    await scene.pool("other")
    await scene.pool("p")
    await scene.ready(RESOURCE_POOL, "p")
    scene.proxy.open_gap("operator", "resourcepools")
    await scene.delete(RESOURCE_POOL, "p")
    await scene.pool("p", clusterName="elsewhere")
    scene.proxy.close_gaps()
    await scene.pool("last")
    for name in ("last", "p", "other"):
        await scene.ready(RESOURCE_POOL, name, seconds=20)
    assert (await scene.get(RESOURCE_POOL, "p"))["status"]["clusterName"] == "elsewhere"
    await scene.group("last")
    await scene.ready(WORKER_GROUP, "last")


def _is_suspended(pool):
    return condition(pool).get("reason") == "Suspended"


def _has_two_nodes(pool):
    return pool.get("status", {}).get("reservation", {}).get("plannedNodes") == 2


@pytest.mark.long
@pytest.mark.parametrize(("writer", "is_old"), [("operator", _is_suspended), ("reporter", _has_two_nodes)])
async def test_a_late_status_of_a_pool_is_not_written_to_its_successor(scene, writer, is_old):
    """Of custom resources, the API server takes a status with another object's UID."""

    def is_status(request):
        is_of_pool = (request.plural, request.name, request.subresource) == (RESOURCE_POOL.plural, "p", "status")
        return is_of_pool and request.client.startswith(writer) and request.method == "PATCH"

    await scene.pool("agents-cluster")
    await scene.ready(RESOURCE_POOL, "agents-cluster")
    old = await scene.pool("p", clusterName="agents-cluster", suspend=writer == "operator", nodes=2)
    late = scene.proxy.rule(Rule(is_status, Delay(4), times=1_000))
    await eventually("writes that are late", lambda: late.hits)
    await asyncio.sleep(2.0)
    late.times = 0
    await scene.delete(RESOURCE_POOL, "p")
    new = await scene.pool("p", clusterName="agents-cluster")
    assert new["metadata"]["uid"] != old["metadata"]["uid"]
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(8):
            async for _, found in scene.api.watch(RESOURCE_POOL, scene.namespace, "p"):
                assert found["metadata"]["uid"] != new["metadata"]["uid"] or not is_old(found)
    await scene.ready(RESOURCE_POOL, "p", seconds=20)


async def test_all_that_is_deleted_leaves_nothing(scene):
    await ready(scene)
    await scene.delete(RESOURCE_POOL, "p")
    await scene.delete(WORKER_GROUP, "p")

    async def is_empty():
        return not await oracles.leftovers(scene)

    await eventually("nothing to be left", is_empty, 15)


async def test_nodes_that_are_drained_one_by_one_never_end_a_group(scene):
    """Each drain costs the group its ranks, and the budget none of them."""
    await scene.pool("p", nodes=2, processesPerNode=1)
    await scene.group("p", failurePolicy={"maxRestarts": 1})
    for number in range(1, 4):
        await scene.ready(WORKER_GROUP, "p", seconds=20)
        await scene.world.delete_pod(scene.world.pods("p", "worker")[number % 2])
        await restarted(scene, number)
    status = (await scene.get(WORKER_GROUP, "p"))["status"]
    assert {failure["reason"] for failure in status["failures"]} == {"NodeLost"}
    assert status["restarts"]["recent"] == []
    assert len(scene.world.live_ranks("p")) == 2


async def test_a_group_that_fails_for_good_can_be_waited_for_and_started_again(scene):
    scene.world.failing["train.Failing"] = "RuntimeError: no"
    await scene.pool("p")
    await scene.group("p", worker={"class": "train.Failing"}, failurePolicy={"maxRestarts": 1})
    found = await scene.until(WORKER_GROUP, "p", "Failed", "True", "ConstructorFailed")
    assert condition(found, "Stalled")["status"] == condition(found, "Failed")["status"]
    assert "deadline" not in found["status"]
    announced = scene.world.gcs["p"].announced

    async def drivers_know():
        return announced["p"][1:] == (2, True)

    await eventually("drivers to learn that there will be no other ranks", drivers_know, 15)
    await scene.edit(WORKER_GROUP, "p", {"worker": {"class": "train.Trainer"}})
    found = await scene.ready(WORKER_GROUP, "p")
    assert condition(found, "Failed")["status"] == "False"
    assert announced["p"][1:] == (3, False)
