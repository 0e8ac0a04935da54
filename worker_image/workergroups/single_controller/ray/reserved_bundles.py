"""A pool over bundles that another process has reserved, from the GCS's records of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ray.util.placement_group import PlacementGroup

from workergroups.ray_private.cluster_state import placement_group_handle

from .resource_pool import Bundle, RayResourcePool
from .visible_devices import own_device_name

Record = Mapping[str, Any]
"""What `placement_group_table` returns for a placement group."""


def pool_over(name_prefix: str, places: Sequence[tuple[Record, int]]) -> RayResourcePool:
    """Return a pool over these bundles, each given by its placement group and its index there, in rank order.

    Closing it leaves the reservation alone.
    """
    groups = {str(record["placement_group_id"]): _group(record) for record, _ in places}
    bundles = [
        Bundle(
            groups[record["placement_group_id"]],
            index,
            devices=_devices(record, index) or None,
            device_name=own_device_name("NPU" if "NPU" in record["bundles"][index] else None),
        )
        for record, index in places
    ]
    first, index = places[0]
    return RayResourcePool.over(
        bundles,
        name_prefix,
        use_gpu=_devices(first, index) > 0,
        max_colocate_count=int(first["bundles"][index]["CPU"]),
    )


def _group(record: Record) -> PlacementGroup:
    bundles = [record["bundles"][index] for index in sorted(record["bundles"])]
    return placement_group_handle(record["placement_group_id"], bundles)


def _devices(record: Record, index: int) -> int:
    bundle = record["bundles"][index]
    return int(bundle.get("GPU") or bundle.get("NPU") or 0)
