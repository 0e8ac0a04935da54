"""A pool's bundles of one node, which verl's classes number from 0."""

import pickle

from workergroups.ray_private.cluster_state import placement_group_handle
from workergroups.single_controller.ray.part import Part, scheduling_strategy

ID = "0123456789abcdef" * 2 + "0100"
WHOLE = placement_group_handle(ID, [{"CPU": float(number)} for number in range(8)])


def test_a_part_has_only_its_own_bundles():
    part = Part(WHOLE, [4, 5, 7])
    assert (part.bundle_count, part.bundle_specs) == (3, [{"CPU": 4.0}, {"CPU": 5.0}, {"CPU": 7.0}])
    assert part == WHOLE


def test_an_actor_in_a_part_is_placed_in_the_bundle_of_the_whole():
    placed = scheduling_strategy(pickle.loads(pickle.dumps(Part(WHOLE, [4, 5, 7]))), 2)
    assert (placed.placement_group.bundle_count, placed.placement_group_bundle_index) == (8, 7)
    assert type(placed.placement_group) is type(WHOLE)


def test_whatever_is_no_part_is_placed_as_before():
    placed = scheduling_strategy(WHOLE, placement_group_bundle_index=3, placement_group_capture_child_tasks=True)
    assert (placed.placement_group, placed.placement_group_bundle_index) == (WHOLE, 3)
    assert placed.placement_group_capture_child_tasks
    assert scheduling_strategy(Part(WHOLE, [4])).placement_group_bundle_index == -1
