"""Which nodes hold the storage units of TransferQueue."""

import pytest

from workergroups.for_verl.storage_units import nodes_with_room


@pytest.mark.parametrize(
    ("cpus", "units", "nodes"),
    [
        ({"head": 1, "a": 50, "b": 50}, 8, ["a", "b"]),
        ({"head": 0, "a": 50, "b": 50}, 2, ["a", "b"]),
        ({"head": 3, "a": 50, "b": 50}, 8, ["a", "b", "head"]),
        ({"head": 1, "a": 4, "b": 50}, 8, ["a", "b"]),
        ({"head": 1, "a": 3, "b": 50}, 8, ["b"]),
        ({"laptop": 4}, 8, ["laptop"]),
        ({"laptop": 8}, 8, ["laptop"]),
    ],
)
def test_a_node_that_is_too_small_for_its_share_is_left_out(cpus, units, nodes):
    assert nodes_with_room(cpus, units) == nodes
