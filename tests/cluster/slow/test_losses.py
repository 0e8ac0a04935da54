"""What breaks a whole cluster, and what waits long for pods: a lower tier shows these too, in seconds."""

import time

import pytest

from tests.cluster.drivers import look
from tests.cluster.kubectl import group, kubectl, pool
from tests.truth.judge import relapses
from tests.truth.watch import GROUPS, POOLS, Watch
from workergroups_agent.start_again import JOINED_SECONDS
from workergroups_api.names import POOL_LABEL


def test_a_group_on_a_pool_that_comes_later_waits_for_it(namespace, clean):
    namespace.apply(group("early", ["later"]))
    ready = namespace.until(lambda: namespace.ready("workergroup", "early"), bool, 20)
    assert ready["reason"] == "PoolNotFound"
    namespace.apply(pool("later", processes=1, accelerator={"vendor": "none"}))
    namespace.until_ready("workergroup", "early")


def test_a_pool_whose_pods_cannot_be_created_leaves_its_cluster_to_the_others(namespace, clean):
    none = {"accelerator": {"vendor": "none"}, "clusterName": "shared", "processes": 1}
    namespace.apply(pool("broken", podTemplate={"spec": {"serviceAccountName": "nobody"}}, **none))
    namespace.until_said("broken", "nobody", seconds=5)
    namespace.apply(pool("whole", **none), group("whole"), group("broken"))
    namespace.until_ready("workergroup", "whole")
    ready = namespace.ready("resourcepool", "broken")
    assert (ready["status"], ready["reason"]) == ("False", "PodsRefused")
    namespace.run(
        "patch", "resourcepool", "broken", "--type=merge", "--patch", '{"spec": {"podTemplate": {"spec": null}}}'
    )
    namespace.until_ready("workergroup", "broken", 90)
    assert namespace.get("workergroup", "whole")["status"]["incarnation"] == 1


def test_a_namespace_that_refuses_rays_pods_reports_it(namespace, clean):
    level = "pod-security.kubernetes.io/enforce"
    kubectl("label", "namespace", namespace.name, f"{level}=restricted")
    try:
        asking = [{"name": "ray-worker", "securityContext": {"allowPrivilegeEscalation": True}}]
        namespace.apply(pool("refused", accelerator={"vendor": "none"}, podTemplate={"spec": {"containers": asking}}))
        ready = namespace.until_said("refused", "violates PodSecurity", seconds=5)
        assert ready["reason"] == "PodsRefused"
    finally:
        kubectl("label", "namespace", namespace.name, f"{level}-")
    namespace.until_ready("resourcepool", "refused", 90)


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


def test_a_head_that_starts_again_in_its_pod_ends_ready_and_recovers(namespace, solo):
    namespace.run("exec", namespace.head("solo"), "--", "sh", "-c", KILL_GCS)
    comes_back_as_a_new_incarnation(namespace, solo)


def worker_of_solo(namespace) -> tuple[str, int]:
    """The worker's pod, and how often kubelet has started its container again."""
    (worker,) = namespace.get("pods", selector=f"{POOL_LABEL}=solo")
    (container,) = worker["status"]["containerStatuses"]
    return worker["metadata"]["uid"], container["restartCount"]


def processes_of_solo(namespace) -> list[str]:
    """The command lines of all processes in the worker's container."""
    (worker,) = namespace.get("pods", selector=f"{POOL_LABEL}=solo")
    show = 'for p in /proc/[0-9]*; do tr "\\0" " " < $p/cmdline 2> /dev/null && echo; done; true'
    return namespace.run("exec", worker["metadata"]["name"], "--", "sh", "-c", show).splitlines()


def test_a_lost_head_ends_ready_and_recovers(namespace, solo):
    namespace.run("delete", "pod", namespace.head("solo"), "--grace-period=0", "--force")
    comes_back_as_a_new_incarnation(namespace, solo)


def test_a_worker_joins_the_next_head_in_its_container_and_leaves_nothing_running(namespace, solo):
    time.sleep(JOINED_SECONDS)
    (worker,) = namespace.get("pods", selector=f"{POOL_LABEL}=solo")
    # As a data loader that outlives its rank: Ray does not know it.
    namespace.run("exec", worker["metadata"]["name"], "--", "sh", "-c", "nohup sleep 86399 > /dev/null 2>&1 &")
    before = worker_of_solo(namespace)
    namespace.run("delete", "pod", namespace.head("solo"), "--grace-period=0", "--force")
    comes_back_as_a_new_incarnation(namespace, solo)
    assert worker_of_solo(namespace) == before
    running = processes_of_solo(namespace)
    assert not [line for line in running if "sleep 86399" in line]
    assert len([line for line in running if "/raylet " in line and "--raylet_socket_name" in line]) == 1


# With it, the raylet ends with code 0, which Ray takes for a stop that somebody wanted.
KILL_NODES_AGENT = "for p in /proc/[0-9]*; do grep -q [D]ashboardAgent $p/cmdline && kill -9 ${p#/proc/}; done; true"


def test_a_node_whose_raylet_ends_without_an_error_comes_back_in_its_pod(namespace, solo):
    time.sleep(JOINED_SECONDS)
    (worker,) = namespace.get("pods", selector=f"{POOL_LABEL}=solo")
    namespace.run("exec", worker["metadata"]["name"], "--", "sh", "-c", KILL_NODES_AGENT)
    before = solo.latest(GROUPS, "solo").incarnation
    assert solo.wait(lambda: solo.latest(GROUPS, "solo").status != "True", 20)
    assert solo.wait(lambda: solo.latest(GROUPS, "solo").status == "True", 60), namespace.overview()
    assert solo.latest(GROUPS, "solo").incarnation > before
    (after,) = namespace.get("pods", selector=f"{POOL_LABEL}=solo")
    assert after["metadata"]["uid"] == worker["metadata"]["uid"]


def test_a_deleted_token_restarts_the_cluster_and_reports_it(namespace, solo):
    namespace.run("delete", "secret", "solo")
    namespace.until_said("solo", "the cluster is being restarted, since Secret solo with Ray's token was deleted", 15)
    comes_back_as_a_new_incarnation(namespace, solo)


def test_an_agent_that_somebody_deletes_is_restored(namespace, solo):
    before = solo.latest(GROUPS, "solo").incarnation
    namespace.run("delete", "deployment", "solo-agent", "--wait=true")
    namespace.until(lambda: namespace.get("deployments"), lambda found: len(found) == 1, 30)
    namespace.until(lambda: namespace.available("solo-agent"), bool, 60)
    namespace.until_ready("workergroup", "solo", 30)
    assert solo.latest(GROUPS, "solo").incarnation == before
    assert "False" not in {seen.status for seen in solo.history(GROUPS, "solo")}
