from __future__ import annotations

import pytest

from workergroups.ray_private.cluster_state import NodeResources
from workergroups.single_controller.ray.shortage import explain_impossible, explain_shortage, fitting_cpus


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


@pytest.mark.parametrize(
    ("process_on_nodes", "why"),
    [
        ([4], None),
        ([2, 2, 2, 2], None),
        ([4, 4], None),
        ([5], "GPU: 5 required on one node, the best node has 4 free of 4"),
        ([4, 4, 1], "GPU: 9 required on all nodes together, the cluster has 8 free of 8"),
    ],
)
def test_says_what_would_be_short_even_if_nothing_else_ran(process_on_nodes, why):
    nodes = [node({"CPU": 64, "GPU": 4}, {"CPU": 64, "GPU": 0})] * 2
    assert explain_impossible(process_on_nodes, {"CPU": 2, "GPU": 1}, nodes, one_node=True) == why


def test_what_the_program_holds_itself_does_not_become_free():
    nodes = [NodeResources("n", "a", total={"GPU": 4}, available={"GPU": 0})]
    taken = {"n": {"GPU": 3}, "gone": {"GPU": 4}}
    assert explain_impossible([1], {"GPU": 1}, nodes, one_node=True, taken=taken) is None
    why = explain_impossible([2], {"GPU": 1}, nodes, one_node=True, taken=taken)
    assert why == "GPU: 2 required on one node, the best node has 1 free of 4"


def test_what_no_node_has_together_is_impossible():
    nodes = [node({"CPU": 64}, {"CPU": 64}), node({"GPU": 4}, {"GPU": 4})]
    why = explain_impossible([1], {"CPU": 2, "GPU": 1}, nodes, one_node=True)
    assert "no node has all of it free at once" in why
    assert explain_impossible([1], {"CPU": 2, "GPU": 1}, nodes, one_node=False) is None


@pytest.mark.parametrize(
    ("process_on_nodes", "cpus", "gpus", "fitting"),
    [
        ([2], 100, 2, 10),
        ([2], 20, 2, 10),
        ([2], 4, 2, 2),  # the laptop of seed 001
        ([2], 5, 2, 2),
        ([1, 1], 4, 2, 2),
        ([2], 2, 2, 1),
        ([2], 1, 2, None),
        ([2], 100, 1, None),  # not for lack of CPUs
    ],
)
def test_as_many_cpus_are_reserved_as_there_are(process_on_nodes, cpus, gpus, fitting):
    laptop = node({"CPU": cpus, "GPU": gpus}, {"CPU": 0, "GPU": 0})
    assert fitting_cpus(process_on_nodes, {"CPU": 10, "GPU": 1}, [laptop], one_node=True) == fitting
