"""Who holds the devices that pods wait for."""

import pytest

from tests.unit.client.fake_cluster import FakeCluster
from workergroups_api.names import POOL_LABEL
from workergroups_cli.description import _show_holders
from workergroups_client.errors import ForbiddenError
from workergroups_client.pods.holders import Holder, holders

GPU, NPU = "nvidia.com/gpu", "huawei.com/Ascend910"


def pod(name, node, phase="Running", namespace="team", pool=None, controller=None, **devices):
    """A pod with a container that has these devices, and one that has none."""
    limits = {{"gpu": GPU, "npu": NPU, "memory": "memory"}[key]: count for key, count in devices.items()}
    owners = [{"kind": "Job", "name": "watcher"}] if controller else []
    owners += [{"kind": "StatefulSet", "name": controller, "controller": True}] if controller else []
    metadata = {"name": name, "namespace": namespace, "labels": {POOL_LABEL: pool} if pool else None}
    return {
        "kind": "Pod",
        "metadata": {**metadata, "ownerReferences": owners or None},
        "spec": {"containers": [{"resources": {"limits": limits}}, {}], **({"nodeName": node} if node else {})},
        "status": {"phase": phase},
    }


WAITING = pod("ppo-worker", None, "Pending", pool="ppo", gpu="8", memory="1Gi")
OTHERS = [
    pod("b-0", "n2", namespace="other", pool="b", gpu="4", memory="1Gi"),
    pod("b-1", "n2", namespace="other", pool="b", gpu="4"),
    pod("leaving", "n1", "Pending", controller="notebook", gpu="2"),
    pod("alone", "n1", gpu=1),
    pod("ended", "n1", "Succeeded", gpu="8"),
    pod("broken", "n1", "Failed", gpu="8"),
    pod("of-another-kind", "n1", npu="8"),
    pod("none", "n1", gpu="0"),
    pod("many", "n3", gpu="1k"),
]
SEEN = [
    Holder("n1", GPU, "team", "StatefulSet notebook", 2),
    Holder("n1", GPU, "team", "pod alone", 1),
    Holder("n2", GPU, "other", "pool b", 8),
    Holder("n3", GPU, "team", "pod many", 1000),
]


def test_pods_on_nodes_that_have_not_ended_are_counted_by_their_owner():
    assert holders(FakeCluster(WAITING, *OTHERS), [WAITING, OTHERS[0]]) == (SEEN, "")


@pytest.mark.parametrize("waiting", [[], [OTHERS[0]], [pod("cpu", None, memory="1Gi")]])
def test_pods_that_do_not_wait_for_devices_cost_no_request(waiting):
    assert holders(None, waiting) == ([], "")


class OfOneNamespace(FakeCluster):
    """A user who may list the pods of the own namespace only."""

    def select(self, kind, selector="", *, everywhere=False):
        if everywhere:
            raise ForbiddenError("you may not list pods")
        return super().select(kind, selector)


def test_a_user_without_the_right_to_all_namespaces_sees_those_of_the_own_and_is_told():
    found, missing = holders(OfOneNamespace(WAITING, *OTHERS), [WAITING])
    assert found == [each for each in SEEN if each.namespace == "team"]
    assert missing == "you may not list the pods of other namespaces, which may hold nvidia.com/gpu as well"


def test_pods_of_a_deployment_are_the_deployments():
    found = pod("notebooks-69d-x", "n1", controller="notebooks-69d", gpu="4")
    found["metadata"]["ownerReferences"][1]["kind"] = "ReplicaSet"
    assert holders(FakeCluster(WAITING, found), [WAITING])[0][0].who == "ReplicaSet notebooks-69d"
    found["metadata"]["labels"] = {"pod-template-hash": "69d"}
    assert holders(FakeCluster(WAITING, found), [WAITING])[0][0].who == "Deployment notebooks"


def test_each_is_a_line(capsys):
    _show_holders(SEEN[2:3])
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["NODE", "DEVICE", "NAMESPACE", "HELD", "BY", "COUNT"],
        ["n2", GPU, "other", "pool", "b", "8"],
    ]
