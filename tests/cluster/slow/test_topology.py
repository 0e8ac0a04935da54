"""The nodes of a pool along racks of real Kubernetes nodes, whose labels the operator reads with the chart's rights."""

import json

import pytest

from tests.cluster.kubectl import kubectl, pool
from workergroups_common.ranges import expanded

RACK = "test.workergroups.dev/rack"
POOL = {"workergroups.dev/cluster": "racks", "workergroups.dev/component": "worker"}
# One of the two racks has two Kubernetes nodes. Without this, the pods would all be in one rack.
ON_ALL_NODES = {
    "spec": {
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": POOL},
            }
        ]
    }
}


@pytest.fixture(scope="module")
def racks():
    nodes = sorted(node["metadata"]["name"] for node in json.loads(kubectl("get", "nodes", "-o", "json"))["items"])
    racks = {node: "a" if number == 1 else "b" for number, node in enumerate(nodes)}
    for node, rack in racks.items():
        kubectl("label", "node", node, f"{RACK}={rack}", "--overwrite")
    yield racks
    for node in racks:
        kubectl("label", "node", node, f"{RACK}-")


def test_the_pods_of_a_rack_have_adjacent_numbers(namespace, clean, racks):
    namespace.apply(
        pool(
            "racks",
            nodes=len(racks),
            processes=1,
            accelerator={"vendor": "none"},
            topology={"key": RACK},
            tolerations=[{"operator": "Exists"}],
            podTemplate=ON_ALL_NODES,
        )
    )
    namespace.until_ready("resourcepool", "racks", 240)
    pods = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in namespace.get("pods")}
    status = namespace.get("resourcepool", "racks")["status"]
    along = [racks[pods[name]] for name in expanded(status["reservation"]["pods"])]
    assert along == sorted(along)
    assert set(along) == {"a", "b"}
    assert (
        "numbered by their pods' names"
        not in namespace.condition("resourcepool", "racks", "BundlesReserved")["message"]
    )
