"""What Kubernetes itself takes devices away with: quotas, limit ranges, and the scheduler's own preemption."""

from contextlib import contextmanager

from tests.cluster.drivers import drive
from tests.cluster.kubectl import group, kubectl, pool

CALL = "workergroups.attach('{0}').execute_all_sync('add', x=1)"


def v1(kind, name, **fields):
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **fields}


def test_a_quota_is_named_until_it_has_room_again(namespace, clean):
    namespace.apply(v1("ResourceQuota", "devices", spec={"hard": {"requests.nvidia.com/gpu": "2"}}))
    namespace.apply(pool("large", processes=4), group("large"))
    ready = namespace.until_said("large", "exceeded quota: devices")
    assert ready["reason"] == "PodsRefused"
    namespace.apply(v1("ResourceQuota", "devices", spec={"hard": {"requests.nvidia.com/gpu": "4"}}))
    namespace.until_ready("workergroup", "large", 90)
    assert drive(namespace, "large", "", CALL.format("large")) == [1, 2, 3, 4]
    namespace.apply(pool("second", processes=1), group("second"))
    namespace.until_said("second", "exceeded quota: devices")
    namespace.run("delete", "workergroup", "large")
    namespace.run("delete", "resourcepool", "large")
    namespace.until_ready("workergroup", "second", 90)
    namespace.run("delete", "resourcequota", "devices")


def test_a_lost_node_of_a_pool_that_fills_its_quota_comes_back(namespace, clean):
    namespace.apply(v1("ResourceQuota", "devices", spec={"hard": {"requests.nvidia.com/gpu": "4"}}))
    namespace.apply(pool("full", nodes=2, processes=2), group("full"))
    namespace.until_ready("workergroup", "full")
    (pod, _) = namespace.get("pods", selector="workergroups.dev/pool=full")
    namespace.run("delete", "pod", pod["metadata"]["name"])
    namespace.until(lambda: namespace.get("workergroup", "full")["status"]["incarnation"], lambda found: found > 1, 60)
    namespace.until_ready("workergroup", "full", 90)
    namespace.run("delete", "resourcequota", "devices")


def test_limits_of_a_namespace_are_taken_or_named(namespace, clean):
    limits = [{"type": "Container", "default": {"memory": "4Gi"}, "max": {"memory": "20Gi"}}]
    namespace.apply(v1("LimitRange", "memory", spec={"limits": limits}))
    namespace.apply(pool("fits", processes=1), group("fits"))
    namespace.until_ready("workergroup", "fits")
    (pod,) = namespace.get("pods", selector="workergroups.dev/pool=fits")
    (ray,) = [each for each in pod["spec"]["containers"] if each["name"] == "ray-worker"]
    assert ray["resources"]["limits"]["memory"] == "4Gi"
    namespace.apply(pool("exceeds", processes=1, resources={"limits": {"memory": "30Gi"}}, clusterName="other"))
    ready = namespace.until_said("exceeds", "maximum memory usage per Container is 20Gi")
    assert ready["reason"] == "PodsRefused"
    assert namespace.ready("workergroup", "fits")["status"] == "True"
    namespace.run("delete", "limitrange", "memory")


@contextmanager
def priority(name, value):
    kubectl("create", "priorityclass", name, f"--value={value}")
    yield name
    kubectl("delete", "priorityclass", name)


def test_a_pool_that_the_scheduler_preempts_reports_it_and_comes_back(namespace, clean):
    with priority(f"urgent-{namespace.name}", 1000) as urgent:
        namespace.apply(pool("patient", processes=4), group("patient"))
        namespace.until_ready("workergroup", "patient")
        namespace.apply(pool("urgent", processes=4, priorityClassName=urgent), group("urgent"))
        namespace.until_ready("workergroup", "urgent")
        assert drive(namespace, "urgent", "", CALL.format("urgent")) == [1, 2, 3, 4]
        said = namespace.until_said("patient", "not enough nvidia.com/gpu")
        assert said["reason"] == "InsufficientResources"
        failures = namespace.get("workergroup", "patient")["status"]["failures"]
        assert {failure["reason"] for failure in failures} == {"Preempted"}
        assert namespace.ready("workergroup", "patient")["status"] == "False"
        namespace.run("delete", "workergroup", "urgent")
        namespace.run("delete", "resourcepool", "urgent")
        namespace.until_ready("workergroup", "patient", 120)
        assert drive(namespace, "patient", "", CALL.format("patient")) == [1, 2, 3, 4]
        assert namespace.get("workergroup", "patient")["status"]["restarts"].get("recent", []) == []
