"""What breaks a whole cluster, and what waits long for pods: a lower tier shows these too, in seconds."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from tests.cluster.drivers import drive, look
from tests.cluster.kubectl import Refused, group, kubectl, pool
from tests.truth.claim import claim as claim_manifests
from tests.truth.claim import directory_of_heads
from tests.truth.faults import SIGNAL_GCS
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


def rank_of(namespace, name) -> tuple[int, int]:
    """The process of the group's only rank, and what it has counted."""
    ((rank,),) = look(namespace, name, name)
    return rank["pid"], rank["value"]


def comes_back_with_its_rank(namespace, watch, name, before, seconds=60):
    """The group is ready, of the same incarnation and with the same process, which was never said to be gone."""
    first = watch.history(GROUPS, name)[0]
    assert watch.wait(lambda: watch.latest(GROUPS, name).status == "True", seconds), namespace.overview()
    assert rank_of(namespace, name) == before
    seen = watch.history(GROUPS, name)
    assert {each.incarnation for each in seen} == {first.incarnation}
    assert {each.status for each in seen} <= {"True", "Unknown"}


def test_a_gcs_that_is_killed_comes_back_in_its_container_with_all_ranks(namespace, solo):
    time.sleep(JOINED_SECONDS)
    drive(namespace, "solo", "", "workergroups.attach('solo').execute_all_sync('add', 5)")
    before, head = rank_of(namespace, "solo"), namespace.head("solo")
    for _ in range(2):
        namespace.run("exec", head, "--", "sh", "-c", SIGNAL_GCS.format("KILL"))
        time.sleep(JOINED_SECONDS + 5)
        comes_back_with_its_rank(namespace, solo, "solo", before)
    (pod,) = [each for each in namespace.get("pods") if each["metadata"]["name"] == head]
    assert [each["restartCount"] for each in pod["status"]["containerStatuses"]] == [0]


CAREFUL_DRIVER = """
group = workergroups.attach("solo")
while (notice := group.notice) is None:
    group.add_to_all(1)
saved = group.execute_all_sync("look")[0]["value"]
left = notice.seconds
group.answer_notice()
try:
    group.add_to_all(1)
except workergroups.RankDiedError as death:
    reason = str(death.reason)
"""


def test_ranks_and_drivers_are_told_before_a_pod_ends_and_it_waits_for_both(namespace, solo):
    labels = f"{POOL_LABEL}=solo"
    (pod,) = [each["metadata"]["name"] for each in namespace.get("pods", selector=labels)]
    with ThreadPoolExecutor(1) as pool_:
        driver = pool_.submit(drive, namespace, "solo", CAREFUL_DRIVER, "(saved, left, reason)")
        assert namespace.until(lambda: rank_of(namespace, "solo")[1], lambda value: value > 0, 30)
        namespace.run("delete", "pod", pod, "--wait=false")
        assert solo.wait(lambda: solo.latest(GROUPS, "solo").reason == "NodeLeaving", 10)
        saved, left, reason = driver.result(60)
    assert 0 < left <= 30
    assert reason == "NodeLost"
    comes_back_as_a_new_incarnation(namespace, solo)
    (failure,) = namespace.get("workergroup", "solo")["status"]["failures"][-1:]
    assert (failure["reason"], failure["pod"]) == ("NodeLost", pod)
    assert failure["lastWords"].endswith("when it was told: Kubernetes ends its pod")
    assert saved > 0


KILL_ALL = "for p in /proc/[0-9]*; do [ ${p#/proc/} != $$ ] && kill -9 ${p#/proc/}; done; kill -9 1; true"


def test_a_head_whose_container_ends_is_unknown_and_comes_back_with_all_ranks(namespace, solo):
    before = rank_of(namespace, "solo")
    with suppress(Refused):  # the container ends under it
        namespace.run("exec", namespace.head("solo"), "--", "sh", "-c", KILL_ALL)
    for plural in (GROUPS, POOLS):
        assert solo.wait(lambda plural=plural: solo.latest(plural, "solo").reason == "HeadAway", 10)
    comes_back_with_its_rank(namespace, solo, "solo", before)


def test_a_rank_that_ends_while_the_head_is_away_is_not_ready_when_it_is_back(namespace, solo):
    (worker,) = namespace.get("pods", selector=f"{POOL_LABEL}=solo")
    before, _ = rank_of(namespace, "solo")
    first = solo.latest(GROUPS, "solo")
    with suppress(Refused):
        namespace.run("exec", namespace.head("solo"), "--", "sh", "-c", KILL_ALL)
    namespace.run("exec", worker["metadata"]["name"], "--", "sh", "-c", f"kill -9 {before}")
    assert solo.wait(lambda: solo.latest(GROUPS, "solo").status == "Unknown", 10)
    assert solo.wait(lambda: solo.latest(GROUPS, "solo").status == "True", 90), namespace.overview()
    assert solo.latest(GROUPS, "solo").incarnation == first.incarnation + 1
    assert relapses(solo.history(GROUPS, "solo"), first.life) == []


@pytest.fixture
def claim(namespace, solo):
    """A claim for the head of another pool, on the node where a head fits."""
    node = namespace.get("pods", namespace.head("solo"))["spec"]["nodeName"]
    name = f"{namespace.name}-heads"
    with directory_of_heads() as directory:
        namespace.apply(*claim_manifests(namespace.name, name, directory))
        yield {
            "gcsStorage": {"claimName": name},
            "nodeSelector": {"kubernetes.io/hostname": node},
            # On kind, kubelet creates the directory, for root.
            "podTemplate": {"spec": {"securityContext": {"runAsUser": 0}}},
        }
        mine = ("resourcepool/kept", "workergroup/kept", f"persistentvolumeclaim/{name}")
        namespace.run("delete", *mine, "--timeout=60s")
        kubectl("delete", "persistentvolume", name, "--wait=false")


def test_with_a_claim_a_head_that_is_deleted_comes_back_with_all_ranks(namespace, claim):
    namespace.apply(pool("kept", processes=1, accelerator={"vendor": "none"}, head=claim), group("kept"))
    namespace.until_ready("workergroup", "kept")
    drive(namespace, "kept", "", "workergroups.attach('kept').execute_all_sync('add', 5)")
    before = rank_of(namespace, "kept")
    with Watch(namespace.name) as watch:
        assert watch.wait(lambda: watch.latest(GROUPS, "kept").status == "True", 10)
        namespace.run("delete", "pod", namespace.head("kept"), "--grace-period=0", "--force")
        assert watch.wait(lambda: watch.latest(GROUPS, "kept").reason == "HeadAway", 10)
        comes_back_with_its_rank(namespace, watch, "kept", before, seconds=120)


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
