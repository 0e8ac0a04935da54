"""The ranks of a group as Ray knows them: the actor of each rank, its process and its node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from workergroups.naming import NAMESPACE, RankName, latest_births

from ..errors import NotFoundError
from ..objects.names import Target
from ..objects.reading import group_status
from ..rank_ranges import chosen_of
from .ray_api import RayApi

_MOST = 10_000


@dataclass(frozen=True)
class RankActor:
    """The actor of a rank of the group's present incarnation."""

    rank: int
    actor_id: str
    state: str
    """Ray's state of the actor: ALIVE once its constructor has returned, PENDING_CREATION before that, or DEAD."""
    pid: int
    node_id: str


def ranks_of(ray: RayApi, group: Target) -> list[RankActor]:
    """Return the ranks that exist or have died, in rank order.

    Raises:
        NotFoundError: The group has no ranks yet.
    """
    incarnation = group_status(group).incarnation
    found: dict[RankName, RankActor] = {}
    for name, actor in rank_rows(ray):
        if (name.uid, name.incarnation) == (group.uid, incarnation):
            found[name] = RankActor(
                name.rank, actor["actor_id"], actor["state"], actor["pid"] or 0, actor["node_id"] or ""
            )
    if not found:
        raise NotFoundError(f"group {group.name} has no ranks yet: workergroups status {group.name} says why")
    latest = latest_births(found)
    return [found[latest[rank]] for rank in sorted(latest)]


def rank_rows(ray: RayApi) -> Iterator[tuple[RankName, dict[str, Any]]]:
    """Yield the rows of all groups' ranks in Ray's table of actors, with their names."""
    for actor in rows(
        ray, "/api/v0/actors", filter_keys="ray_namespace", filter_predicates="=", filter_values=NAMESPACE
    ):
        if name := RankName.parse(actor["name"] or ""):
            yield name, actor


def node_addresses(ray: RayApi) -> dict[str, str]:
    """Return the IP address of each live Ray node by its id."""
    return {node["node_id"]: node["node_ip"] for node in rows(ray, "/api/v0/nodes") if node["state"] == "ALIVE"}


def choose(ranks: Sequence[RankActor], wanted: str | None) -> list[RankActor]:
    """Return the ranks of a range such as ``0-3,7``; without a range, all.

    Raises:
        ClientError: The group has no such rank, or the text is not a range.
    """
    chosen = set(chosen_of([rank.rank for rank in ranks], wanted))
    return [rank for rank in ranks if rank.rank in chosen]


def rows(ray: RayApi, path: str, **query: str) -> list[dict[str, Any]]:
    """Return a table of Ray's state API."""
    return list(ray.get(path, limit=_MOST, detail=1, **query)["data"]["result"]["result"])
