"""Pools: what cannot be placed says why, pools share a cluster, devices of each process, lost pods."""

import time

import pytest

from tests.cluster.drivers import drive, look
from tests.cluster.kubectl import group, pool
from tests.truth.judge import untruth
from tests.truth.watch import GROUPS, POOLS, Watch

NVIDIA = {"vendor": "nvidia", "product": "NVIDIA-A100-SXM4-80GB"}
AMD = {"vendor": "amd", "product": "AMD-Instinct-MI300X"}


@pytest.fixture(scope="module")
def stuck(namespace):
    """Pools of one cluster that cannot be placed; the first, by its name, is the one whose image the head has."""
    h100 = {"vendor": "nvidia", "product": "H100"}
    namespace.apply(
        pool("big", processes=5, clusterName="stuck"),
        pool("h100", accelerator=h100, clusterName="stuck", progressDeadlineSeconds=25),
        pool("no-image", image="localhost/no-such-image:1", clusterName="stuck"),
    )


def test_a_pool_on_a_product_that_no_node_has_reports_it(namespace, stuck):
    ready = namespace.until_said("h100", "no node fits on nodes with nvidia.com/gpu.product=H100")
    assert ready["reason"] == "NoMatchingNode"
    assert namespace.get("resourcepool", "h100")["status"]["deadline"]


def test_a_pool_that_asks_for_more_than_there_is_names_the_resource(namespace, stuck):
    ready = namespace.until_said("big", "not enough nvidia.com/gpu on nodes with nvidia.com/gpu.product=")
    assert ready["reason"] == "InsufficientResources"
    assert "needs nvidia.com/gpu: 5" in ready["message"]


def test_an_image_that_cannot_be_pulled_is_named(namespace, stuck):
    ready = namespace.until_said("no-image", "cannot pull localhost/no-such-image:1")
    assert ready["reason"] == "ImagePullFailed"


def test_after_its_deadline_a_pool_makes_no_progress_and_still_says_why(namespace, stuck):
    late = namespace.until(
        lambda: namespace.condition("resourcepool", "h100", "Progressing"),
        lambda seen: seen.get("status") == "False",
        60,
    )
    assert late["reason"] == "ProgressDeadlineExceeded"
    assert "for more than 25 s; the operator keeps trying; NoMatchingNode: " in late["message"]
    assert namespace.ready("resourcepool", "h100")["reason"] == "NoMatchingNode"


def test_a_name_that_somebody_else_has_is_left_alone(namespace, clean):
    theirs = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mine"}, "stringData": {"key": "value"}}
    namespace.apply(theirs, pool("mine"))
    ready = namespace.until_said("mine", "Secret mine exists and was not created by WorkerGroups")
    assert ready["reason"] == "NameTaken"
    assert namespace.get("secret", "mine")["metadata"].get("ownerReferences") is None
    clusters = namespace.get("rayclusters")
    assert "mine" not in {cluster["metadata"]["name"] for cluster in clusters}
    namespace.run("delete", "secret", "mine")


MERGED = """
both = workergroups.attach("both")
added = both.execute_all_sync("add", x=[3] * 8)
seen = both.execute_all_sync("look")
hip, pods = ([rank[name] for rank in seen] for name in ("HIP_VISIBLE_DEVICES", "pod"))
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
    world_size, added, hip, pods = drive(namespace, "shared", MERGED, "[both.world_size, added, hip, pods]")
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
    # An empty list is left where nodes were listed while they had no bundles.
    assert (status["nodes"], status["readyNodes"], status["reservation"].get("nodes", [])) == (2, 2, [])

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
    assert namespace.ready("resourcepool", "thick")["status"] == "True"
    namespace.until(lambda: namespace.ready("workergroup", "trainer"), lambda seen: seen["status"] == "True", 60)
    status = namespace.get("workergroup", "trainer")["status"]
    assert {failure["reason"] for failure in status["failures"]} == {"NodeLost"}
    assert status["restarts"].get("recent", []) == []
    after = pods(namespace)
    assert after[0] not in before
    assert after[1:] == before[1:]
