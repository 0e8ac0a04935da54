"""Pools: what cannot be placed says why, pools share a cluster, devices of each process, lost pods and heads."""

import ast
import time

import pytest
from kubectl import group, kubectl, pool

from truth.judge import relapses, untruth
from truth.watch import GROUPS, POOLS, Watch

NVIDIA = {"vendor": "nvidia", "product": "NVIDIA-A100-SXM4-80GB"}
AMD = {"vendor": "amd", "product": "AMD-Instinct-MI300X"}


def result_of(output):
    (result,) = [line for line in output.splitlines() if line.startswith("RESULT ")]
    return ast.literal_eval(result.removeprefix("RESULT "))


def message(namespace, name, words, seconds=60):
    return namespace.until(
        lambda: namespace.ready("resourcepool", name), lambda seen: words in seen.get("message", ""), seconds
    )


@pytest.fixture
def clean(namespace):
    """Nothing of this test's is left for the next one, whose devices would be taken."""
    yield
    namespace.run("delete", "resourcepools,workergroups", "--all", "--wait=true", "--timeout=60s")
    namespace.until(lambda: namespace.get("pods"), lambda pods: not pods, 90)


def test_a_pool_on_a_product_that_no_node_has_says_so(namespace, clean):
    namespace.apply(pool("h100", accelerator={"vendor": "nvidia", "product": "H100"}, progressDeadlineSeconds=25))
    ready = message(namespace, "h100", "no node fits on nodes with nvidia.com/gpu.product=H100")
    assert ready["reason"] == "NoMatchingNode"
    assert namespace.get("resourcepool", "h100")["status"]["deadline"]
    late = message(namespace, "h100", "not ready within 25 s")
    assert late["reason"] == "DeadlineExceeded"
    assert "nvidia.com/gpu.product=H100" in late["message"]


def test_a_pool_that_asks_for_more_than_there_is_names_the_resource(namespace, clean):
    namespace.apply(pool("big", processes=5))
    ready = message(namespace, "big", "not enough nvidia.com/gpu on nodes with nvidia.com/gpu.product=")
    assert ready["reason"] == "InsufficientResources"
    assert "needs nvidia.com/gpu: 5" in ready["message"]


def test_an_image_that_cannot_be_pulled_is_named(namespace, clean):
    namespace.apply(pool("bad-image", image="localhost/no-such-image:1", rayVersion="2.60.0"))
    ready = message(namespace, "bad-image", "cannot pull localhost/no-such-image:1")
    assert ready["reason"] == "ImagePullFailed"


def test_a_name_that_somebody_else_has_is_left_alone(namespace, clean):
    theirs = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mine"}, "stringData": {"key": "value"}}
    namespace.apply(theirs, pool("mine"))
    ready = message(namespace, "mine", "Secret mine exists and is not WorkerGroups'")
    assert ready["reason"] == "NameTaken"
    assert namespace.get("secret", "mine")["metadata"].get("ownerReferences") is None
    assert namespace.get("rayclusters") == []
    namespace.run("delete", "secret", "mine")


def test_a_group_on_a_pool_that_comes_later_waits_for_it(namespace, clean):
    namespace.apply(group("early", ["later"]))
    ready = namespace.until(lambda: namespace.ready("workergroup", "early"), bool, 20)
    assert ready["reason"] == "PoolNotFound"
    namespace.apply(pool("later", processes=1, accelerator={"vendor": "none"}))
    namespace.until_ready("workergroup", "early")


MERGED = """
import workergroups
both = workergroups.attach("both")
added = both.execute_all_sync("add", x=[3] * 8)
seen = both.execute_all_sync("look")
hip, pods = ([rank[name] for rank in seen] for name in ("HIP_VISIBLE_DEVICES", "pod"))
print("RESULT", [both.world_size, added, hip, pods])
"""


def test_two_pools_on_one_cluster_merge_and_part_again(namespace, clean):
    namespace.apply(
        pool("green", processes=4, clusterName="shared", accelerator=NVIDIA),
        pool("red", processes=4, clusterName="shared", accelerator=AMD),
        group("both", ["green", "red"]),
        group("only-green", ["green"]),
    )
    namespace.until_ready("workergroup", "both")
    namespace.until_ready("workergroup", "only-green")
    world_size, added, hip, pods = result_of(namespace.drive("shared", MERGED))
    assert world_size == 8
    assert added == [3, 4, 5, 6, 7, 8, 9, 10]
    assert hip == [None] * 4 + ["0", "1", "2", "3"]
    nodes = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in namespace.get("pods")}
    green, red = (namespace.node_with(label) for label in ("nvidia.com/gpu.product", "amd.com/gpu.product-name"))
    assert [nodes[pod] for pod in pods] == [green] * 4 + [red] * 4

    namespace.run("delete", "resourcepool", "red")
    ready = namespace.until(
        lambda: namespace.ready("workergroup", "both"), lambda seen: seen["reason"] == "PoolNotFound", 30
    )
    assert "spec.pools[1]" in ready["message"]
    namespace.until(lambda: namespace.get("pods", selector="workergroups.dev/pool=red"), lambda pods: not pods, 90)
    assert namespace.ready("workergroup", "only-green")["status"] == "True"


def test_a_pool_whose_pods_cannot_be_made_leaves_its_cluster_to_the_others(namespace, clean):
    none = {"accelerator": {"vendor": "none"}, "clusterName": "shared", "processes": 1}
    namespace.apply(pool("broken", podTemplate={"spec": {"serviceAccountName": "nobody"}}, **none))
    message(namespace, "broken", "nobody", seconds=5)
    namespace.apply(pool("whole", **none), group("whole"), group("broken"))
    namespace.until_ready("workergroup", "whole")
    ready = namespace.ready("resourcepool", "broken")
    assert (ready["status"], ready["reason"]) == ("False", "PodsRefused")
    namespace.run(
        "patch", "resourcepool", "broken", "--type=merge", "--patch", '{"spec": {"podTemplate": {"spec": null}}}'
    )
    namespace.until_ready("workergroup", "broken", 90)
    assert namespace.get("workergroup", "whole")["status"]["incarnation"] == 1


def test_a_namespace_that_refuses_rays_pods_says_so(namespace, clean):
    level = "pod-security.kubernetes.io/enforce"
    kubectl("label", "namespace", namespace.name, f"{level}=restricted")
    try:
        namespace.apply(pool("refused", accelerator={"vendor": "none"}))
        ready = message(namespace, "refused", "violates PodSecurity", seconds=5)
        assert ready["reason"] == "PodsRefused"
    finally:
        kubectl("label", "namespace", namespace.name, f"{level}-")
    namespace.until_ready("resourcepool", "refused", 90)


def look(namespace, cluster, *groups):
    """What each rank of these groups says of its process."""
    program = f"""
import workergroups
print("RESULT", [workergroups.attach(name).execute_all_sync("look") for name in {groups!r}])
"""
    return result_of(namespace.drive(cluster, program))


def test_each_rank_sees_all_devices_of_its_process_and_so_do_those_that_share_them(namespace, clean):
    namespace.apply(
        pool("pairs", processes=2, clusterName="shared", accelerator=NVIDIA | {"perProcess": 2}),
        pool("quad", processes=1, clusterName="shared", accelerator=AMD | {"perProcess": 4}),
        *(group(name, ["pairs"]) for name in ("one", "two")),
        *(group(name, ["quad"]) for name in ("three", "four")),
    )
    for name in ("one", "two", "three", "four"):
        namespace.until_ready("workergroup", name)
    seen = look(namespace, "shared", "one", "two", "three", "four")
    assert [[rank["CUDA_VISIBLE_DEVICES"] for rank in ranks] for ranks in seen[:2]] == [["0,1", "2,3"]] * 2
    assert [[rank["HIP_VISIBLE_DEVICES"] for rank in ranks] for ranks in seen[2:]] == [["0,1,2,3"]] * 2


def pods(namespace, cluster="uneven"):
    """The pod of each rank of `trainer`."""
    return [rank["pod"] for rank in look(namespace, cluster, "trainer")[0]]


def test_ranks_follow_their_pods_and_a_lost_pod_is_reserved_anew(namespace, clean):
    namespace.apply(
        pool("thin", nodes=2, processes=1, clusterName="uneven"),
        pool("thick", processes=2, clusterName="uneven"),
        group("trainer", ["thin", "thick"]),
    )
    namespace.until_ready("workergroup", "trainer")
    before = pods(namespace)
    assert len(set(before)) == 3
    assert before[2] == before[3]
    status = namespace.get("resourcepool", "thin")["status"]
    assert (status["nodes"], status["readyNodes"], status["reservation"].get("nodes")) == (2, 2, None)

    with Watch(namespace.name) as watch:
        assert watch.wait(lambda: watch.latest(GROUPS, "trainer").status == "True", 10)
        namespace.run("delete", "pod", before[0], "--wait=false")
        deleted = time.monotonic()
        time.sleep(1.5)
        histories = [watch.history(POOLS, "thin", deleted - 1), watch.history(GROUPS, "trainer", deleted - 1)]
        seconds = untruth(histories, deleted)
        assert seconds is not None
        assert seconds <= 1
    namespace.until_ready("resourcepool", "thin", 90)
    namespace.until(lambda: namespace.ready("workergroup", "trainer"), lambda seen: seen["reason"] == "NodeLost", 30)
    assert namespace.ready("resourcepool", "thick")["status"] == "True"

    anew = '{"spec": {"env": [{"name": "FLAVOUR", "value": "anew"}]}}'
    namespace.run("patch", "workergroup", "trainer", "--type=merge", "--patch", anew)
    namespace.until_ready("workergroup", "trainer", 60)
    after = pods(namespace)
    assert after[0] not in before
    assert after[1:] == before[1:]


KILL_GCS = 'for p in /proc/[0-9]*; do [ "$(cat $p/comm)" = gcs_server ] && kill -9 ${p#/proc/}; done; true'


@pytest.fixture(scope="module")
def alone(namespace):
    """The smallest pool with a group on it: what breaks it here, it survives."""
    namespace.apply(pool("solo", processes=1, accelerator={"vendor": "none"}), group("solo"))
    yield
    namespace.run("delete", "resourcepools,workergroups", "--all", "--wait=true", "--timeout=60s")


@pytest.fixture
def solo(namespace, alone):
    """The pool and its group, ready; and what is seen of them from then on."""
    namespace.until_ready("workergroup", "solo")
    with Watch(namespace.name) as watch:
        assert watch.wait(lambda: watch.latest(GROUPS, "solo").status == "True", 10)
        yield watch


def comes_back_as_a_new_incarnation(namespace, watch, seconds=180):
    """Ready turned away, and is True again only for other ranks, which a driver reaches at once."""
    first = {plural: watch.history(plural, "solo")[0] for plural in (POOLS, GROUPS)}
    assert watch.wait(lambda: watch.latest(GROUPS, "solo").status != "True", 20)
    assert watch.wait(lambda: watch.latest(GROUPS, "solo").status == "True", seconds), namespace.overview()
    assert watch.latest(GROUPS, "solo").incarnation == first[GROUPS].incarnation + 1
    assert [rank["value"] for rank in look(namespace, "solo", "solo")[0]] == [0]
    for plural, seen in first.items():
        assert relapses(watch.history(plural, "solo"), seen.life) == []


def test_a_head_that_starts_again_in_its_pod_turns_ready_away_and_comes_back(namespace, solo):
    namespace.run("exec", namespace.head("solo"), "--", "sh", "-c", KILL_GCS)
    comes_back_as_a_new_incarnation(namespace, solo)


def test_a_lost_head_turns_ready_away_and_comes_back(namespace, solo):
    namespace.run("delete", "pod", namespace.head("solo"), "--grace-period=0", "--force")
    comes_back_as_a_new_incarnation(namespace, solo)


def test_a_deleted_token_starts_the_cluster_anew_and_says_so(namespace, solo):
    namespace.run("delete", "secret", "solo")
    message(namespace, "solo", "the cluster is started anew, since Secret solo with Ray's token was deleted", 15)
    comes_back_as_a_new_incarnation(namespace, solo)


def test_an_agent_that_somebody_deletes_comes_back(namespace, solo):
    before = solo.latest(GROUPS, "solo").incarnation
    namespace.run("delete", "deployment", "solo-agent", "--wait=true")
    namespace.until(lambda: namespace.get("deployments"), lambda found: len(found) == 1, 30)
    namespace.until(lambda: namespace.available("solo-agent"), bool, 60)
    namespace.until_ready("workergroup", "solo", 30)
    assert solo.latest(GROUPS, "solo").incarnation == before
    assert "False" not in {seen.status for seen in solo.history(GROUPS, "solo")}
