"""Some bundles of a placement group, as verl's classes count them: from 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ray.util.placement_group import PlacementGroup
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from workergroups.ray_private.cluster_state import placement_group_handle


class Part(PlacementGroup):  # type: ignore[misc]  # Ray is not typed
    """The bundles of a placement group that a pool has on one node: `bundle_count` and `bundle_specs` are theirs.

    Ray places by its own handles: use `scheduling_strategy`.
    """

    def __init__(self, whole: PlacementGroup, numbers: Sequence[int]) -> None:
        """Take the bundles with these numbers."""
        super().__init__(whole.id, [whole.bundle_specs[number] for number in numbers])
        self.numbers = tuple(numbers)
        self.whole_bundles = whole.bundle_specs


def scheduling_strategy(
    placement_group: PlacementGroup, placement_group_bundle_index: int = -1, **more: Any
) -> PlacementGroupSchedulingStrategy:
    """Return Ray's strategy of this name, which knows no parts."""
    if isinstance(placement_group, Part) and placement_group_bundle_index >= 0:
        placement_group_bundle_index = placement_group.numbers[placement_group_bundle_index]
        placement_group = placement_group_handle(placement_group.id.hex(), placement_group.whole_bundles)
    return PlacementGroupSchedulingStrategy(placement_group, placement_group_bundle_index, **more)
