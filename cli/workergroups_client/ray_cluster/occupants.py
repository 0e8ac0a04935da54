"""What runs in the bundles of a pool: ranks of groups, and actors of any program."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workergroups.naming import PlacementName, RankName

from ..objects.names import Target
from .ranks import rows
from .ray_api import RayApi

# Such as GPU, GPU_group_ID of the placement group, and GPU_group_0_ID of its first bundle.
_DEVICE = re.compile(r"(GPU|NPU)($|_group_)")


@dataclass(frozen=True)
class Occupant:
    """Actors of one class in the bundles of one node."""

    who: str
    """``group NAME``, or ``job ID``: the submission id of the job whose program has created them, or else Ray's id."""
    class_name: str
    node: int
    """The node's number in the pool."""
    processes: int
    devices: float
    """How many they have together; groups that share a device have parts of it."""
    since: float | None
    """When the first of them started, in seconds since the epoch; ``None`` if none has started yet."""


def occupants(ray: RayApi, pool: Target) -> list[Occupant]:
    """Return what runs in the pool's bundles, node after node. A pool that reserves nothing has no bundles."""
    nodes = _placement_groups(ray, pool)
    if not nodes:
        return []
    jobs = {job["job_id"]: job["submission_id"] for job in ray.get("/api/jobs/") if job.get("job_id")}
    # This table alone has when they started, and it is old by up to ten seconds: what it says otherwise does not count.
    started = {key: actor["startTime"] for key, actor in ray.get("/logical/actors")["data"]["actors"].items()}
    found: dict[tuple[int, str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for actor in rows(ray, "/api/v0/actors", filter_keys="state", filter_predicates="!=", filter_values="DEAD"):
        node = nodes.get(actor["placement_group_id"] or "")
        if node is not None:
            found[node, _who(actor, jobs), actor["class_name"]].append(actor)
    return [
        Occupant(who, class_name, node, len(actors), sum(map(_devices, actors)), _since(actors, started))
        for (node, who, class_name), actors in sorted(found.items())
    ]


def _placement_groups(ray: RayApi, pool: Target) -> dict[str, int]:
    """Return the number of the node of each of the pool's placement groups, by id."""
    named = ((PlacementName.parse(row["name"] or ""), row) for row in rows(ray, "/api/v0/placement_groups"))
    return {row["placement_group_id"]: name.index for name, row in named if name and name.uid == pool.uid}


def _who(actor: Mapping[str, Any], jobs: Mapping[str, str | None]) -> str:
    rank = RankName.parse(actor["name"] or "")
    return f"group {rank.group}" if rank else f"job {jobs.get(actor['job_id']) or actor['job_id']}"


def _devices(actor: Mapping[str, Any]) -> float:
    """Return how many devices an actor has: in a bundle, Ray names the resource after it, in one way or in two."""
    asked = actor.get("required_resources") or {}
    return max((float(amount) for name, amount in asked.items() if _DEVICE.match(name)), default=0.0)


def _since(actors: list[Mapping[str, Any]], started: Mapping[str, int]) -> float | None:
    """Return the first start; Ray has 0 for an actor that has not started."""
    times = [started.get(actor["actor_id"]) for actor in actors]
    return min((time / 1000 for time in times if time), default=None)
