from __future__ import annotations

from workergroups.single_controller.ray.cluster_state import NodeResources
from workergroups.single_controller.ray.shortage import explain_shortage


def node(total, available):
    return NodeResources(node_id="n", address="10.0.0.1", total=total, available=available)


FOUR_GPUS = [{"CPU": 2, "GPU": 1}] * 4


def test_names_what_no_node_has_enough_of():
    nodes = [node({"CPU": 64, "GPU": 2}, {"CPU": 64, "GPU": 2}), node({"CPU": 64}, {"CPU": 64})]
    assert explain_shortage(FOUR_GPUS, nodes, one_node=True) == (
        "GPU: 4 required on one node, the best node has 2 free of 2"
    )


def test_tells_what_is_taken_from_what_is_not_there():
    nodes = [node({"CPU": 8, "GPU": 4}, {"CPU": 8, "GPU": 1})]
    assert "GPU: 4 required on one node, the best node has 1 free of 4" in explain_shortage(
        FOUR_GPUS, nodes, one_node=True
    )


def test_names_every_short_resource():
    reason = explain_shortage(FOUR_GPUS, [node({"CPU": 4}, {"CPU": 4})], one_node=True)
    assert "CPU: 8 required on one node, the best node has 4 free of 4" in reason
    assert "GPU: 4 required on one node, the best node has 0 free of 0" in reason


def test_nodes_add_up_when_the_bundles_may_spread():
    nodes = [node({"CPU": 8, "GPU": 2}, {"CPU": 8, "GPU": 1})] * 2
    assert explain_shortage(FOUR_GPUS, nodes, one_node=False) == (
        "GPU: 4 required on all nodes together, the cluster has 2 free of 4"
    )


def test_resources_that_are_free_on_different_nodes_only():
    nodes = [node({"CPU": 8}, {"CPU": 8}), node({"CPU": 8, "GPU": 4}, {"GPU": 4})]
    assert "no node has all of it free at once: 8 CPU, 4 GPU on one node" in explain_shortage(
        FOUR_GPUS, nodes, one_node=True
    )


def test_an_empty_cluster_has_nothing():
    assert "GPU: 4 required on one node, the best node has 0 free of 0" in explain_shortage(
        FOUR_GPUS, [], one_node=True
    )
