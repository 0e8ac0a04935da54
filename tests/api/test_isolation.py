"""Whatever one object contains, only that object reports it; its neighbours are served as if it did not exist."""

import asyncio
import json
import time
from itertools import count

import pytest

from tests.simulation.api import ApiError, eventually
from tests.simulation.faults import INTERNAL, QUOTA, TOO_MANY, Cut, Refuse, Rule
from tests.simulation.monitor import SLACK_SECONDS
from tests.simulation.scene import condition
from workergroups_api import manifest as kinds
from workergroups_api.manifest import RESOURCE_POOL, WORKER_GROUP
from workergroups_api.names import RESTARTED_AT_ANNOTATION
from workergroups_operator import try_pods, work_queue
from workergroups_operator.timings import Timings

SHARED = {"clusterName": "shared"}


def container(**fields):
    return {"spec": {"containers": [{"name": "ray-worker", **fields}]}}


@pytest.mark.parametrize("field", ["containers", "volumes"])
async def test_a_template_in_which_a_list_is_a_text_is_refused_at_admission(scene, field):
    with pytest.raises(ApiError, match=field):
        await scene.pool("p", podTemplate={"spec": {field: "x"}})


@pytest.mark.parametrize(
    ("template", "said"),
    [
        (container(resources={"limits": {"memory": "lots"}}), "quantities"),
        (container(comand=["x"]), "comand"),
        ({"spec": {"serviceAccountName": "nobody"}}, "nobody"),
        ({"spec": {"priorityClassName": "none"}}, "none"),
        ({"spec": {"tolerations": "x"}}, "tolerations"),
        ({"spec": {"nodeSelector": {"a": {"deep": 1}}}}, "nodeSelector"),
        (container(env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "nonsense"}}}]), "fieldPath"),
    ],
)
async def test_a_template_that_the_api_server_refuses_is_reported_of_its_own_pool_only(scene, template, said):
    """KubeRay stops at the first worker group whose pod it cannot create."""
    await scene.pool("a-bad", **SHARED, podTemplate=template)
    await scene.pool("good", **SHARED)
    await scene.group("good")
    await scene.ready(WORKER_GROUP, "good")
    bad = await scene.until(RESOURCE_POOL, "a-bad", "Ready", "False", "PodsRefused", seconds=5 + SLACK_SECONDS)
    assert said in condition(bad)["message"]
    assert await writes(scene, RESOURCE_POOL, "a-bad", seconds=2) == 0


@pytest.mark.long
async def test_an_operator_that_reads_another_refusal_each_time_is_not_kept_busy(scene, monkeypatch):
    """As by a webhook that says the time, or the number of the request."""
    monkeypatch.setattr(work_queue, "RUNS_AT_ONCE", 10)
    numbers = count()
    monkeypatch.setattr(try_pods, "api_error_message", lambda _: f"request {next(numbers)} denied")
    await scene.pool("p", podTemplate={"spec": {"serviceAccountName": "nobody"}})
    await scene.until(RESOURCE_POOL, "p", "Ready", "False", "PodsRefused")
    started = time.monotonic()
    written = await writes(scene, RESOURCE_POOL, "p", seconds=20)
    allowed = work_queue.RUNS_AT_ONCE + (time.monotonic() - started) / Timings().turn_again
    assert 1 <= written <= allowed + 1


async def writes(scene, kind, name, seconds):
    """How often an object is written within that time."""
    seen = set()
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        seen.add((await scene.get(kind, name))["metadata"]["resourceVersion"])
        await asyncio.sleep(0.05)
    return len(seen) - 1


async def test_nulls_are_arguments(scene):
    await scene.pool("p")
    await scene.group("p", worker={"class": "train.Trainer", "args": [None], "kwargs": {"none": None, "deep": [None]}})
    await scene.ready(WORKER_GROUP, "p")
    (launch,) = {rank.launch.model_dump_json() for rank in scene.world.live_ranks("p")}
    written = json.loads(launch)
    assert (written["init_args"], written["init_kwargs"]) == ([None], {"none": None, "deep": [None]})
    assert (await scene.condition(WORKER_GROUP, "p", "UpToDate"))["status"] == "True"


@pytest.mark.parametrize(
    "message",
    [
        "x" * 40_000,
        "no \N{COLLISION SYMBOL}\N{GRINNING FACE} luck",
        "a\x00b",
        "half \ud83d pair",
        "a\x85b\u2028c\x7f",
        "\ufffe",
    ],
    ids=["long", "emoji", "nul", "surrogate", "line breaks", "no character"],
)
async def test_any_text_of_a_constructor_is_reported(scene, message):
    scene.world.failing["train.Failing"] = message
    await scene.pool("p")
    await scene.group("bad", pools=[{"name": "p"}], worker={"class": "train.Failing"})
    await scene.group("good", pools=[{"name": "p"}])
    bad = await scene.until(WORKER_GROUP, "bad", "Ready", "False", "ConstructorFailed")
    assert condition(bad)["message"].startswith("rank 0 in pod p-p-")
    await scene.ready(WORKER_GROUP, "good")


async def test_groups_with_large_env_do_not_keep_others_from_their_plan(scene):
    large = [{"name": f"A{number}", "value": "x" * 30_000} for number in range(3)]
    await scene.pool("p")
    await scene.group("p")
    await scene.ready(WORKER_GROUP, "p")
    for name in ("large-1", "large-2"):
        await scene.group(name, pools=[{"name": "p"}], env=large)
    await scene.group("small", pools=[{"name": "p"}])
    for name in ("small", "large-1", "large-2"):
        await scene.ready(WORKER_GROUP, name)
    assert (await scene.condition(WORKER_GROUP, "p"))["status"] == "True"
    plan = await scene.get(kinds.CONFIG_MAP, "p-plan")
    assert len(plan["data"]["plan.json"]) < 10_000


@pytest.mark.parametrize(
    "fault",
    [TOO_MANY, INTERNAL, QUOTA, Cut(done=True), Cut(done=False)],
    ids=["429", "500", "403", "cut after", "cut before"],
)
@pytest.mark.parametrize("plural", ["configmaps", "roles", "rayclusters"])
async def test_a_failed_write_is_retried_and_leaves_the_others_true(scene, plural, fault):
    await scene.pool("p", **SHARED)
    await scene.group("p")
    await scene.ready(WORKER_GROUP, "p")
    before = [await scene.condition(kind, "p") for kind in (RESOURCE_POOL, WORKER_GROUP)]
    rule = Rule(lambda r: r.method == "PATCH" and r.plural == plural and r.client == "operator", fault, times=2)
    scene.proxy.rule(rule)
    await scene.pool("q", **SHARED)
    await scene.group("q")
    await scene.ready(WORKER_GROUP, "q", seconds=15)
    assert rule.hits >= 1
    assert [await scene.condition(kind, "p") for kind in (RESOURCE_POOL, WORKER_GROUP)] == before


async def test_a_cluster_has_no_pods_before_it_has_its_network_policy(scene):
    refusal = Refuse(422, "Invalid", "spec.ingress[1].from[0]: Forbidden: may not be specified")
    scene.proxy.begin_faults()
    scene.proxy.rule(Rule(lambda r: r.method == "PATCH" and r.plural == "networkpolicies", refusal, times=10**6))
    await scene.pool("p")
    found = await scene.until(RESOURCE_POOL, "p", "Ready", "False", "ApplyFailed")
    assert "spec.ingress[1].from[0]" in condition(found)["message"]
    await asyncio.sleep(2)
    assert await scene.api.list(kinds.RAY_CLUSTER, scene.namespace) == []
    scene.proxy.end_faults()
    await scene.ready(RESOURCE_POOL, "p", seconds=40)


async def test_a_dry_run_that_fails_by_chance_takes_no_pods_away(scene):
    await scene.pool("p", **SHARED, nodes=2)
    await scene.ready(RESOURCE_POOL, "p")
    rule = scene.proxy.rule(Rule(lambda r: r.plural == "pods" and r.method == "POST", INTERNAL, times=3))
    await scene.edit(RESOURCE_POOL, "p", {"podTemplate": {"metadata": {"labels": {"team": "a"}}}})
    await scene.annotate(RESOURCE_POOL, "p", RESTARTED_AT_ANNOTATION, "now")
    await eventually("a dry run", lambda: rule.hits)
    await scene.until(RESOURCE_POOL, "p", "UpToDate", "False")
    assert (await scene.condition(RESOURCE_POOL, "p"))["status"] == "True"
    cluster = await scene.get(kinds.RAY_CLUSTER, "shared")
    assert [group["replicas"] for group in cluster["spec"]["workerGroupSpecs"]] == [2]


async def test_a_quota_is_reported_and_waited_for(scene):
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {"pods": "2"}}}
    path = f"/api/v1/namespaces/{scene.namespace}/resourcequotas"
    await scene.api.request("POST", path, quota)

    async def counted():
        return (await scene.api.request("GET", f"{path}/q")).get("status", {}).get("hard")

    await eventually("the quota to count", counted)
    await scene.pool("p")
    refused = await scene.until(RESOURCE_POOL, "p", "Ready", "False", "PodsRefused", seconds=5 + SLACK_SECONDS)
    assert "exceeded quota" in condition(refused)["message"]
    await scene.api.request("DELETE", f"{path}/q")
    await scene.ready(RESOURCE_POOL, "p", seconds=30)


async def test_a_foreign_service_of_the_heads_name_is_reported(scene):
    service = {"spec": {"ports": [{"port": 1}]}, "metadata": {"name": "p-head-svc", "namespace": scene.namespace}}
    await scene.api.create({"apiVersion": "v1", "kind": "Service"} | service)
    await scene.pool("p")
    taken = await scene.until(RESOURCE_POOL, "p", "Ready", "False", "NameTaken", seconds=5 + SLACK_SECONDS)
    assert "p-head-svc" in condition(taken)["message"]
    await scene.api.delete(kinds.SERVICE, scene.namespace, "p-head-svc")
    await scene.ready(RESOURCE_POOL, "p", seconds=15)


class TestUnderPodSecurity:
    @pytest.fixture
    def namespace_labels(self):
        return {"pod-security.kubernetes.io/enforce": "restricted"}

    async def test_a_pool_is_served_without_a_word_of_the_users(self, scene):
        await scene.pool("p", setup={"script": "true"})
        await scene.ready(RESOURCE_POOL, "p", seconds=20)

    async def test_pods_that_ask_for_more_are_refused_and_reported_within_five_seconds(self, scene):
        asking = {
            "spec": {"containers": [{"name": "ray-worker", "securityContext": {"allowPrivilegeEscalation": True}}]}
        }
        await scene.pool("p", podTemplate=asking)
        found = await scene.until(RESOURCE_POOL, "p", "Ready", "False", "PodsRefused", seconds=5 + SLACK_SECONDS)
        assert "PodSecurity" in condition(found)["message"]


async def test_elsewhere_images_may_run_as_root(scene):
    await scene.pool("p")
    await scene.ready(RESOURCE_POOL, "p", seconds=20)
    pods = [
        pod for pod in await scene.api.list(kinds.POD, scene.namespace) if pod["metadata"]["name"].startswith("p-p-")
    ]
    assert ["securityContext" in pod["spec"]["containers"][0] for pod in pods] == [False]
