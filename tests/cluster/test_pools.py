"""Pools: what cannot be placed says why, pools share a cluster, AMD devices, lost pods."""

import ast

import pytest
from kubectl import group, pool

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
    namespace.apply(pool("h100", accelerator={"vendor": "nvidia", "product": "H100"}, reservationDeadlineSeconds=25))
    ready = message(namespace, "h100", "no node fits on nodes with nvidia.com/gpu.product=H100")
    assert ready["reason"] == "NoMatchingNode"
    late = message(namespace, "h100", "not ready within 25 s")
    assert late["reason"] == "DeadlineExceeded"
    assert "nvidia.com/gpu.product=H100" in late["message"]


def test_a_pool_that_asks_for_more_than_there_is_names_the_resource(namespace, clean):
    namespace.apply(pool("big", processes=(5,)))
    ready = message(namespace, "big", "not enough nvidia.com/gpu on nodes with nvidia.com/gpu.product=")
    assert ready["reason"] == "InsufficientResources"
    assert "needs nvidia.com/gpu: 5" in ready["message"]


def test_an_image_that_cannot_be_pulled_is_named(namespace, clean):
    namespace.apply(pool("bad-image", image="localhost/no-such-image:1", rayVersion="2.60.0"))
    ready = message(namespace, "bad-image", "cannot pull localhost/no-such-image:1")
    assert ready["reason"] == "ImagePullFailed"


def test_a_name_that_somebody_else_has_is_left_alone(namespace, clean):
    theirs = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mine-token"}, "stringData": {"key": "value"}}
    namespace.apply(theirs, pool("mine"))
    ready = message(namespace, "mine", "Secret mine-token exists and is not WorkerGroups'")
    assert ready["reason"] == "NameTaken"
    assert namespace.get("secret", "mine-token")["metadata"].get("ownerReferences") is None
    assert namespace.get("rayclusters") == []
    namespace.run("delete", "secret", "mine-token")


def test_a_group_on_a_pool_that_comes_later_waits_for_it(namespace, clean):
    namespace.apply(group("early", ["later"]))
    ready = namespace.until(lambda: namespace.ready("workergroup", "early"), bool, 20)
    assert ready["reason"] == "PoolNotFound"
    namespace.apply(pool("later", processes=(1,), accelerator={"vendor": "none"}))
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
        pool("green", processes=(4,), cluster="shared", accelerator=NVIDIA),
        pool("red", processes=(4,), cluster="shared", accelerator=AMD),
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


def pod_of(namespace, **labels):
    selector = ",".join(f"workergroups.dev/{key}={value}" for key, value in labels.items())
    return [pod["metadata"]["name"] for pod in namespace.get("pods", selector=selector)]


PODS = """
import workergroups
print("RESULT", [rank["pod"] for rank in workergroups.attach("trainer").execute_all_sync("look")])
"""


def test_ranks_follow_their_pods_and_a_lost_pod_is_reserved_anew(namespace, clean):
    namespace.apply(pool("uneven", processes=(1, 2, 1)), group("trainer", ["uneven"]))
    namespace.until_ready("workergroup", "trainer")
    nodes = namespace.get("resourcepool", "uneven")["status"]["reservation"]["nodes"]
    before = [node["pod"] for node in nodes]
    assert before[0] < before[2], "nodes of one size are in the order of their pods' names"
    assert result_of(namespace.drive("uneven", PODS)) == [before[0], before[1], before[1], before[2]]

    namespace.run("delete", "pod", before[1], "--grace-period=0", "--force")
    ready = namespace.until(
        lambda: namespace.ready("workergroup", "trainer"), lambda seen: seen["status"] != "True", 30
    )
    assert ready["message"]
    namespace.until(
        lambda: namespace.get("resourcepool", "uneven")["status"]["reservation"]["nodes"][1].get("pod"),
        lambda pod: pod not in (None, before[1]),
        90,
    )
    namespace.until_ready("resourcepool", "uneven")
    nodes = namespace.get("resourcepool", "uneven")["status"]["reservation"]["nodes"]
    assert [nodes[0]["pod"], nodes[2]["pod"]] == [before[0], before[2]]
    namespace.until(lambda: namespace.ready("workergroup", "trainer"), lambda seen: seen["reason"] == "NodeLost", 30)


KILL_GCS = 'for p in /proc/[0-9]*; do [ "$(cat $p/comm)" = gcs_server ] && kill -9 ${p#/proc/}; done; true'


def test_a_head_that_starts_again_in_its_pod_turns_ready_away_and_comes_back(namespace, clean):
    namespace.apply(pool("solo", processes=(1,), accelerator={"vendor": "none"}), group("trainer", ["solo"]))
    namespace.until_ready("workergroup", "trainer")
    namespace.run("exec", namespace.head("solo"), "--", "sh", "-c", KILL_GCS)
    namespace.until(lambda: namespace.ready("resourcepool", "solo"), lambda seen: seen["status"] != "True", 20)
    namespace.until_ready("resourcepool", "solo", 180)
    namespace.until_ready("workergroup", "trainer", 60)


def test_a_lost_head_turns_ready_away_and_comes_back(namespace, clean):
    namespace.apply(pool("solo", processes=(1,), accelerator={"vendor": "none"}), group("trainer", ["solo"]))
    namespace.until_ready("workergroup", "trainer")
    namespace.run("delete", "pod", namespace.head("solo"), "--grace-period=0", "--force")
    namespace.until(lambda: namespace.ready("resourcepool", "solo"), lambda seen: seen["status"] != "True", 10)
    namespace.until_ready("resourcepool", "solo", 180)
    namespace.until_ready("workergroup", "trainer", 60)


def test_an_agent_that_somebody_deletes_comes_back(namespace, clean):
    namespace.apply(pool("fixed", processes=(1,), accelerator={"vendor": "none"}))
    namespace.until_ready("resourcepool", "fixed")
    namespace.run("delete", "deployment", "fixed-agent", "--wait=true")
    namespace.until(lambda: namespace.get("deployments"), lambda found: len(found) == 1, 30)
    namespace.until(lambda: namespace.available("fixed-agent"), bool, 60)
    namespace.until_ready("resourcepool", "fixed")
