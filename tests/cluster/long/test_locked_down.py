"""In a namespace that enforces the restricted Pod Security Standard, with NetworkPolicies that are enforced."""

import ast
import json
import os
import subprocess
import sys
from contextlib import contextmanager

import pytest

from tests.cluster.drivers import drive
from tests.cluster.kubectl import group, kubectl, new_namespace, pool

OPERATOR = ("-n", "workergroups-system", "deployment/workergroups-operator")
KUBERAY = {"app.kubernetes.io/name": "kuberay-operator"}
# The ports at which a pod listens for others, from the kernel's tables: state 0A, and no loopback address.
LISTENING = """
ports = set()
for name, loopback in (("tcp", "0100007F"), ("tcp6", "00000000000000000000000001000000")):
    for line in open(f"/proc/net/{name}").readlines()[1:]:
        address, port = line.split()[1].split(":")
        if line.split()[3] == "0A" and address != loopback:
            ports.add(int(port, 16))
print(sorted(ports))
"""
REACHED = """
import socket, sys
from concurrent.futures import ThreadPoolExecutor
def is_reached(end):
    try:
        socket.create_connection(end, timeout=3).close()
    except OSError:
        return False
    return True
ends = [(sys.argv[1], int(port)) for port in sys.argv[2:]]
with ThreadPoolExecutor(64) as threads:
    print([port for (_, port), yes in zip(ends, threads.map(is_reached, ends)) if yes])
"""
SERVING = ["python", "-m", "http.server", "8000"]


@pytest.fixture(scope="module", autouse=True)
def enforced():
    """The local cluster's nodes enforce policies; other clusters have their own network plugins."""
    if os.environ.get("CLUSTER") in ("kind", "current"):
        pytest.skip("needs the local cluster, whose nodes it makes enforce policies")
    tool = [sys.executable, "-m", "tools.local_cluster", "network-policies"]
    subprocess.run([*tool, "on"], check=True, timeout=600)
    yield
    subprocess.run([*tool, "off"], check=True, timeout=120)


def outsider(name, **labels):
    """A pod that serves at port 8000, on the node of the pools."""
    container = {
        "name": "main",
        "image": os.environ["WORKER_IMAGE"],
        "command": SERVING,
        "securityContext": {
            "runAsNonRoot": True,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    spec = {
        "containers": [container],
        "nodeSelector": {"workergroups.dev/node": "nvidia"},
        "tolerations": [{"operator": "Exists"}],
        "terminationGracePeriodSeconds": 0,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}


@pytest.fixture(scope="module")
def elsewhere():
    """Another namespace, with a pod, and with one that has the labels of KubeRay's operator."""
    with new_namespace("elsewhere") as found:
        found.apply(outsider("stranger"), outsider("kuberay", **KUBERAY))
        found.run("wait", "--for=condition=Ready", "pods", "--all", "--timeout=120s")
        yield found


@pytest.fixture(scope="module")
def cluster(namespace, enforced):
    """A pool of two nodes with a rank on each, and a stranger in its namespace."""
    kubectl("label", "namespace", namespace.name, "pod-security.kubernetes.io/enforce=restricted")
    namespace.apply(pool("actors", nodes=2, processes=1), group("actors"), outsider("stranger"))
    namespace.until_ready("workergroup", "actors")
    namespace.run("wait", "--for=condition=Ready", "pod/stranger", "--timeout=120s")
    return namespace


def printed(namespace, pod, program, *words):
    return ast.literal_eval(namespace.run("exec", pod, "--", "python", "-c", program, *map(str, words)))


def pods(namespace, component):
    found = namespace.get("pods", selector=f"workergroups.dev/cluster=actors,workergroups.dev/component={component}")
    return {pod["metadata"]["name"]: pod["status"]["podIP"] for pod in found}


def address(namespace, pod):
    return namespace.get("pod", pod)["status"]["podIP"]


def test_ranks_on_two_nodes_answer_the_driver(cluster):
    assert drive(cluster, "actors", "", "len(workergroups.attach('actors').execute_all_sync('look'))") == 2


@pytest.mark.parametrize("component", ["head", "worker"])
def test_every_port_is_open_to_the_cluster_and_closed_to_everybody_else(cluster, elsewhere, component):
    head = cluster.head("actors")
    for pod, ip in pods(cluster, component).items():
        ports = printed(cluster, pod, LISTENING)
        assert len(ports) > 3
        # What listens for a moment only is gone from both.
        open_ = printed(cluster, head, REACHED, ip, *ports)
        assert len(open_) > 3
        assert printed(cluster, "stranger", REACHED, ip, *ports) == []
        assert printed(elsewhere, "stranger", REACHED, ip, *ports) == []


def test_of_kuberays_operator_only_the_dashboard_is_reached(cluster, elsewhere):
    ((head, ip),) = pods(cluster, "head").items()
    assert printed(elsewhere, "kuberay", REACHED, ip, *printed(cluster, head, LISTENING)) == [8265]
    for pod, ip in pods(cluster, "worker").items():
        assert printed(elsewhere, "kuberay", REACHED, ip, *printed(cluster, pod, LISTENING)) == []


def test_the_agent_listens_on_no_port(cluster):
    (agent,) = pods(cluster, "agent")
    assert printed(cluster, agent, LISTENING) == []


def test_nobody_reaches_the_operator_and_kubelet_finds_it_ready(elsewhere):
    labels = "app.kubernetes.io/name=workergroups-operator"
    found = json.loads(kubectl("-n", "workergroups-system", "get", "pods", "-l", labels, "-o", "json"))["items"]
    assert len(found) == 2, "one serves, and one waits"
    for pod in found:
        assert printed(elsewhere, "stranger", REACHED, pod["status"]["podIP"], 8080) == []
        assert [each["status"] for each in pod["status"]["conditions"] if each["type"] == "Ready"] == ["True"]


def test_pods_of_others_are_left_alone(cluster, elsewhere):
    assert printed(cluster, "stranger", REACHED, address(elsewhere, "stranger"), 8000) == [8000]


@contextmanager
def settings(**network_policy):
    """The operator with another `networkPolicy` than the chart's default."""
    said = kubectl("get", *OPERATOR, "-o", "json")
    (before,) = [
        each["value"]
        for each in json.loads(said)["spec"]["template"]["spec"]["containers"][0]["env"]
        if each["name"] == "NETWORK_POLICY"
    ]
    _restart_with(json.dumps(json.loads(before) | network_policy))
    try:
        yield
    finally:
        _restart_with(before)


def _restart_with(network_policy):
    kubectl("set", "env", *OPERATOR, f"NETWORK_POLICY={network_policy}")
    kubectl("rollout", "status", *OPERATOR, "--timeout=60s")


def test_what_ray_may_connect_to_can_be_closed_and_the_cluster_still_works(cluster, elsewhere):
    stranger, head = address(elsewhere, "stranger"), cluster.head("actors")

    def reached():
        return printed(cluster, head, REACHED, stranger, 8000)

    assert reached() == [8000]
    with settings(egress=[]):
        cluster.until(reached, lambda found: found == [], 60)
        assert drive(cluster, "actors", "", "len(workergroups.attach('actors').execute_all_sync('look'))") == 2
        assert cluster.ready("workergroup", "actors")["status"] == "True"
    cluster.until(reached, lambda found: found == [8000], 60)


def test_switched_off_everybody_reaches_the_head(cluster, elsewhere):
    ((_, ip),) = pods(cluster, "head").items()

    def reached():
        return printed(elsewhere, "stranger", REACHED, ip, 8265)

    assert reached() == []
    with settings(enabled=False):
        cluster.until(reached, lambda found: found == [8265], 60)
    cluster.until(reached, lambda found: found == [], 60)
