"""A pool of four NVIDIA devices with groups on it: the seeds' numbers in real pods, and what deaths do."""

import json
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.cluster.drivers import JOB, drive, look
from tests.cluster.kubectl import Refused, config_map, group, kubectl, pool, writes, writes_at_rest
from tests.truth.faults import SIGNAL_GCS
from tests.truth.watch import GROUPS, Watch


@pytest.fixture(scope="module", autouse=True)
def running(namespace):
    """One pool; `trainer` on all of it, `critic` sharing its devices, `left` and `right` on a half each."""
    halves = [{"name": "actors", "bundles": {"start": start, "count": 2}} for start in (0, 2)]
    namespace.apply(
        config_map("left", accumulator=code(namespace)),
        pool(processes=4),
        group("trainer", ["actors"], env=[{"name": "FLAVOUR", "value": "mint"}]),
        group("critic", ["actors"]),
        group("left", [halves[0]], code={"configMap": {"name": "left"}}),
        group("right", [halves[1]]),
    )
    for name in ("trainer", "critic", "left", "right"):
        namespace.until_ready("workergroup", name)


def code(namespace):
    return namespace.get("configmap", "accumulator")["data"]["accumulator.py"]


SEED_000 = """
group = workergroups.attach("trainer")
results = [group.execute_all_sync("add", x=[1, 1, 1, 1])]
results += [group.add_to_all(x=10), group.read_rank_zero(), group.world_size, group.worker_names]
results += [workergroups.attach("critic").execute_all_sync("add", x=[2, 2, 2, 2])]
"""


def test_seed_000_in_real_pods_as_a_job(namespace):
    results = drive(namespace, "actors", SEED_000, "results", way=JOB)
    added, to_all, rank_zero, world_size, names, critic = results
    assert added == [1, 2, 3, 4]
    assert to_all == [11, 12, 13, 14]
    assert rank_zero == 11
    assert world_size == 4
    assert [name.rsplit("/", 1)[1] for name in names] == ["0-of-4", "1-of-4", "2-of-4", "3-of-4"]
    assert critic == [2, 3, 4, 5]


def test_seed_001_in_real_pods(namespace):
    attach = "group = workergroups.attach('left')"
    results = drive(namespace, "actors", attach, "[group.execute_all_sync('add', x=[1, 3]), group.world_size]")
    assert results == [[1, 4], 2]


def test_each_rank_sees_its_own_device_only_and_the_groups_environment(namespace):
    (seen,) = look(namespace, "actors", "trainer")
    assert [rank["CUDA_VISIBLE_DEVICES"] for rank in seen] == ["0", "1", "2", "3"]
    assert [rank["RANK"] for rank in seen] == ["0", "1", "2", "3"]
    assert {rank["FLAVOUR"] for rank in seen} == {"mint"}


def test_halves_of_a_pool_have_different_devices(namespace):
    seen = look(namespace, "actors", "left", "right")
    assert [[rank["CUDA_VISIBLE_DEVICES"] for rank in half] for half in seen] == [["0", "1"], ["2", "3"]]


def test_the_pools_pod_is_on_the_nvidia_node_with_the_limit(namespace):
    (worker,) = namespace.get("pods", selector="workergroups.dev/component=worker")
    assert worker["spec"]["nodeName"] == namespace.node_with("nvidia.com/gpu.product=NVIDIA-A100-SXM4-80GB")
    (container,) = worker["spec"]["containers"]
    assert container["resources"]["limits"]["nvidia.com/gpu"] == "4"


def test_ray_refuses_who_has_no_token(namespace):
    head = namespace.head("actors")
    connect = "import ray; ray.init(address='127.0.0.1:6379', logging_level='ERROR')"
    with pytest.raises(Refused, match=r"(?i)auth|token"):
        namespace.run("exec", head, "--", "env", "-u", "RAY_AUTH_TOKEN", "python", "-c", connect)
    ask = "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8265/api/jobs/')"
    with pytest.raises(Refused, match="401"):
        namespace.run("exec", head, "--", "python", "-c", ask)


READ_TOKENS = """
import glob, ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
ray.init(address="auto")
SECRETS = "/var/run/secrets/kubernetes.io/serviceaccount/token"

@ray.remote(num_cpus=0)
def read():
    found = []
    for path in [SECRETS, *glob.glob("/proc/[0-9]*/root" + SECRETS)]:
        try:
            found.append((path, len(open(path).read())))
        except OSError:
            pass
    return found

def read_on(node):
    strategy = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
    return ray.get(read.options(scheduling_strategy=strategy).remote(), timeout=60)

found = {node["NodeManagerHostname"]: read_on(node) for node in ray.nodes() if node["Alive"]}
"""


def test_user_code_finds_no_kubernetes_token_wherever_it_runs(namespace):
    found = drive(namespace, "actors", READ_TOKENS, "found", way=JOB)
    assert len(found) == 2, "the head and the pool's node"
    assert not any("agent" in host for host in found)
    assert not any(found.values())


def test_at_rest_nobody_writes(namespace):
    before = writes_at_rest()
    time.sleep(15)
    assert writes() == before


def test_a_killed_agent_changes_nothing_for_the_ranks(namespace):
    before = look(namespace, "actors", "trainer")
    (agent,) = namespace.get("pods", selector="workergroups.dev/component=agent")
    namespace.run("delete", "pod", agent["metadata"]["name"], "--grace-period=0", "--force")
    assert namespace.ready("workergroup", "trainer")["status"] == "True"
    after = look(namespace, "actors", "trainer")
    assert after == before

    def next_agent():
        agents = namespace.get("pods", selector="workergroups.dev/component=agent")
        return [pod["metadata"]["name"] for pod in agents if pod["status"].get("phase") == "Running"]

    namespace.until(next_agent, lambda names: names and agent["metadata"]["name"] not in names, 60)
    namespace.until(lambda: namespace.available("actors-agent"), bool, 60)
    namespace.until_ready("workergroup", "trainer", 10)


OPERATOR = "app.kubernetes.io/name=workergroups-operator"
# Prints the process ids of the executor's driver, and does something with each.
EXECUTORS = (
    "for p in /proc/[0-9]*; do if tr '\\0' ' ' < $p/cmdline 2>/dev/null | grep -q '[e]xecutor.driver'; "
    "then echo ${{p#/proc/}}; {}; fi; done; true"
)


def test_an_executor_that_is_killed_starts_again_and_acts(namespace):
    head = namespace.head("actors")
    killed = namespace.run("exec", head, "--", "sh", "-c", EXECUTORS.format("kill -9 ${p#/proc/}")).split()
    assert len(killed) == 1

    def executors():
        return namespace.run("exec", head, "--", "sh", "-c", EXECUTORS.format("true")).split()

    namespace.until(executors, lambda found: found and found != killed, 60)
    assert namespace.ready("workergroup", "trainer")["status"] == "True"
    changed = {"spec": {"env": [{"name": "FLAVOUR", "value": "plain"}]}}
    namespace.run("patch", "workergroup", "right", "--type=merge", "--patch", json.dumps(changed))
    launched = {"incarnation": 2, "readyRanks": 2}
    namespace.until(
        lambda: namespace.get("workergroup", "right")["status"], lambda status: launched.items() <= status.items(), 60
    )
    assert {rank["FLAVOUR"] for rank in look(namespace, "actors", "right")[0]} == {"plain"}


def test_an_observer_that_ends_is_restarted_and_finds_the_ranks(namespace):
    (agent,) = namespace.get("pods", selector="workergroups.dev/component=agent")
    name = agent["metadata"]["name"]
    namespace.run("exec", name, "-c", "observer", "--", "sh", "-c", "kill 1")

    def restarts():
        containers = namespace.get("pod", name)["status"]["containerStatuses"]
        return {container["name"]: container["restartCount"] for container in containers}

    namespace.until(restarts, lambda counts: counts == {"observer": 1, "reporter": 0}, 60)
    namespace.until(lambda: namespace.available("actors-agent"), bool, 60)
    namespace.until_ready("workergroup", "trainer", 10)


GCS = "for p in /proc/[0-9]*; do [ $(cat $p/comm) = gcs_server ] && echo $p; done; true"


def test_a_killed_gcs_starts_again_in_its_container_and_costs_no_rank(namespace):
    head, before = namespace.head("actors"), look(namespace, "actors", "trainer", "critic")
    killed = namespace.run("exec", head, "--", "sh", "-c", GCS)
    namespace.run("exec", head, "--", "sh", "-c", SIGNAL_GCS.format("KILL"))

    def gcs():
        return namespace.run("exec", head, "--", "sh", "-c", GCS)

    namespace.until(gcs, lambda found: found not in ("", killed), 30)
    namespace.until_ready("workergroup", "trainer")
    assert look(namespace, "actors", "trainer", "critic") == before
    (pod,) = [each for each in namespace.get("pods") if each["metadata"]["name"] == head]
    assert [each["restartCount"] for each in pod["status"]["containerStatuses"]] == [0]


SYSTEM = ("-n", "workergroups-system")


def serving_operator():
    return kubectl(*SYSTEM, "get", "lease", "workergroups-operator", "-o", "jsonpath={.spec.holderIdentity}")


def test_the_operator_that_waits_takes_over_and_finds_nothing_to_write(namespace):
    old, before = serving_operator(), writes_at_rest()
    kubectl(*SYSTEM, "delete", "pod", old, "--wait=true")
    namespace.until(serving_operator, lambda name: name not in ("", old), 10)
    kubectl(*SYSTEM, "wait", "pod", "-l", OPERATOR, "--for=condition=Ready", "--timeout=60s")
    time.sleep(10)
    assert writes() == before


def test_a_killed_rank_turns_ready_to_false_within_a_second_and_all_ranks_are_recreated(namespace):
    (rank,) = [rank for rank in look(namespace, "actors", "critic")[0] if rank["RANK"] == "2"]
    left = drive(namespace, "actors", "", "workergroups.attach('critic').execute_all_sync('leave')")
    with Watch(namespace.name) as watch:
        assert watch.wait(lambda: watch.latest(GROUPS, "critic").status == "True", 10)
        namespace.run("exec", rank["pod"], "--", "sh", "-c", f"kill -9 {rank['pid']}")
        assert watch.wait(lambda: watch.latest(GROUPS, "critic").status == "False", 1)
        assert watch.wait(lambda: watch.latest(GROUPS, "critic").status == "True", 60)
    assert namespace.ready("workergroup", "trainer")["status"] == "True"
    status = namespace.get("workergroup", "critic")["status"]
    assert (status["incarnation"], status["restarts"]["count"], status["readyRanks"]) == (2, 1, 4)
    (failure,) = status["failures"]
    assert (failure["rank"], failure["incarnation"], failure["reason"]) == (2, 1, "ProcessDied")
    assert failure["pod"] == rank["pod"]
    assert failure["node"] == namespace.get("pod", rank["pod"])["spec"]["nodeName"]
    after, _ = look(namespace, "actors", "critic", "trainer")
    assert [each["pod"] for each in after] == [rank["pod"]] * 4
    running = f"for p in {' '.join(map(str, left))}; do kill -0 $p 2>/dev/null && echo $p; done; true"
    namespace.until(lambda: namespace.run("exec", rank["pod"], "--", "sh", "-c", running), lambda found: not found, 10)


REPLACED = """
import pathlib, time
from workergroups.errors import IncarnationReplacedError

old = workergroups.attach("left")
before = old.execute_all_sync("look")
pathlib.Path("/tmp/attached").touch()
said, deadline = None, time.monotonic() + 60
while said is None and time.monotonic() < deadline:
    try:
        old.execute_all_sync("look")
    except IncarnationReplacedError as error:
        said = (error.group, error.incarnation, error.current)
    time.sleep(0.1)
new = workergroups.attach("left", newer_than=old.incarnation)
"""


def test_changed_env_is_a_new_incarnation_in_the_same_pods_and_drivers_are_told(namespace):
    changed = {"spec": {"env": [{"name": "FLAVOUR", "value": "lime"}]}}
    with ThreadPoolExecutor() as threads:
        driver = threads.submit(drive, namespace, "actors", REPLACED, "[said, before, new.execute_all_sync('look')]")
        attached = ["exec", namespace.head("actors"), "--", "sh", "-c", "test -e /tmp/attached && echo yes || true"]
        namespace.until(lambda: namespace.run(*attached), bool, 60)
        namespace.run("patch", "workergroup", "left", "--type=merge", "--patch", json.dumps(changed))
    said, before, after = driver.result()
    assert said == ("left", 1, 2)
    assert [rank["FLAVOUR"] for rank in after] == ["lime", "lime"]
    same = ("pod", "RANK", "CUDA_VISIBLE_DEVICES")
    assert [[rank[name] for name in same] for rank in after] == [[rank[name] for name in same] for rank in before]
    assert namespace.until_ready("workergroup", "left")
    assert namespace.get("workergroup", "left")["status"]["incarnation"] == 2


def test_changed_code_is_a_new_incarnation(namespace):
    changed = code(namespace).replace("self.value = self.rank", "self.value = self.rank + 100")
    namespace.apply(config_map("left", accumulator=changed))
    group = namespace.until(
        lambda: namespace.get("workergroup", "left")["status"],
        lambda status: status["incarnation"] == 3 and status["readyRanks"] == 2,
        60,
    )
    assert [rank["value"] for rank in look(namespace, "actors", "left")[0]] == [100, 101]
    up_to_date = next(found for found in group["conditions"] if found["type"] == "UpToDate")
    assert up_to_date["status"] == "True"
    assert namespace.get("workergroup", "trainer")["status"]["incarnation"] == 1


@pytest.mark.parametrize(
    ("worker", "reason", "words"),
    [
        ({"class": "no_such_module.X"}, "LaunchFailed", "ModuleNotFoundError: No module named 'no_such_module'"),
        ({"class": "accumulator.Missing"}, "LaunchFailed", "has no class Missing"),
        (
            {"class": "accumulator.Accumulator", "kwargs": {"fail_on": 1}},
            "ConstructorFailed",
            "ValueError: rank 1 was told to fail",
        ),
        ({"class": "accumulator.Accumulator", "kwargs": {"colour": 1}}, "LaunchFailed", "colour"),
    ],
)
def test_a_class_that_cannot_start_shows_its_exceptions_last_line(namespace, worker, reason, words):
    namespace.apply(group("broken", ["actors"], worker=worker))
    ready = namespace.until(
        lambda: namespace.ready("workergroup", "broken"), lambda seen: seen.get("reason") == reason, 60
    )
    assert words in ready["message"]
    namespace.run("delete", "workergroup", "broken")


def test_a_config_map_that_comes_late_is_used_when_it_comes(namespace):
    namespace.apply(group("late", ["actors"], code={"configMap": {"name": "late"}}))
    ready = namespace.until(
        lambda: namespace.ready("workergroup", "late"), lambda seen: "no ConfigMap late" in seen.get("message", ""), 60
    )
    assert ready["reason"] == "WaitingForCode"
    assert namespace.get("workergroup", "late")["status"]["deadline"]
    namespace.apply(config_map("late", accumulator=code(namespace)))
    namespace.until_ready("workergroup", "late")
    assert "deadline" not in namespace.get("workergroup", "late")["status"]


def test_a_deleted_group_gives_its_devices_back(namespace):
    def names():
        actors = "ray.util.list_named_actors(all_namespaces=True)"
        result = f"sorted({{actor['name'].split('/')[0] for actor in {actors}}})"
        return drive(namespace, "actors", "import ray; ray.init(address='auto')", result)

    assert "right" in names()
    namespace.run("delete", "workergroup", "right")
    namespace.until(names, lambda found: "right" not in found, 30)


def test_the_status_of_a_group_that_was_deleted_and_recreated_is_its_own(namespace):
    old = namespace.get("workergroup", "left")["metadata"]["uid"]
    namespace.run("delete", "workergroup", "left")
    namespace.apply(group("left", [{"name": "actors", "bundles": {"start": 0, "count": 2}}]))
    namespace.until_ready("workergroup", "left")
    new = namespace.get("workergroup", "left")["metadata"]["uid"]
    names = drive(namespace, "actors", "", "workergroups.attach('left').worker_names")
    assert new != old
    assert {name.split("/")[1] for name in names} == {new}


def _is_of_chart(item):
    return item["metadata"].get("labels", {}).get("app.kubernetes.io/managed-by") == "Helm"


def test_after_deleting_the_pool_nothing_is_left(namespace):
    namespace.run("delete", "resourcepools,workergroups", "--all", "--wait=true", "--timeout=60s")
    of_ours = "rayclusters,deployments,secrets,configmaps,serviceaccounts,roles,rolebindings,leases,networkpolicies"
    kinds = f"pods,services,{of_ours}"

    def left():
        items = json.loads(namespace.run("get", kinds, "-o", "json"))["items"]
        ours = {("ConfigMap", name) for name in ("accumulator", "late", "left", "kube-root-ca.crt")}
        # An operator for some namespaces has its own rights in each.
        names = {(item["kind"], item["metadata"]["name"]) for item in items if not _is_of_chart(item)}
        return names - ours - {("ServiceAccount", "default")}

    namespace.until(left, lambda found: not found, 90)
