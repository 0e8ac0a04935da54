"""Which job is meant, by its id, by the name of a pool or group, or by nothing at all."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from contextlib import contextmanager

from . import names
from .cluster import Cluster
from .errors import NotFoundError
from .jobs import Job, JobRecord
from .pool import Pool
from .waiting import Tell, silently


@contextmanager
def the_job(cluster: Cluster, name: str | None, tell: Tell = silently) -> Iterator[Job]:
    """The job of that id, or the latest one of the pool or group of that name, or without a name the latest of all.

    Raises:
        NotFoundError: There is none; says which there are.
    """
    of_target = name is not None and _is_target(cluster, name)
    with all_jobs(cluster, name if of_target else None, tell) as found:
        matching = [each for each in found if of_target or name in (None, each[1].id)]
        if not matching:
            raise NotFoundError(_what_there_is(cluster, name, [record.id for _, record in found]))
        pool, record = matching[0]
        yield pool.job(record.id)


@contextmanager
def all_jobs(cluster: Cluster, name: str | None, tell: Tell = silently) -> Iterator[list[tuple[Pool, JobRecord]]]:
    """The jobs of a pool's or group's Ray cluster, or of all in the namespace, the latest first.

    The connections that they were found by last until the block ends.
    """
    pools = [Pool(name, cluster, tell)] if name is not None else _one_of_each_cluster(cluster, tell)
    try:
        found = [(pool, record) for pool in pools for record in pool.jobs()]
        yield sorted(found, key=lambda each: -(each[1].started or 0))
    finally:
        for pool in pools:
            pool.close()


def _one_of_each_cluster(cluster: Cluster, tell: Tell) -> list[Pool]:
    """A pool of each Ray cluster that has a head; the others have no jobs."""
    pools = {names.ray_cluster(cluster, each): each.name for each in names.list_all(cluster, names.POOL)}
    return [
        Pool(f"{names.POOL}/{name}", cluster, tell)
        for ray_cluster, name in pools.items()
        if names.running_pods(cluster, ray_cluster, "head")
    ]


def _is_target(cluster: Cluster, name: str) -> bool:
    try:
        names.find(cluster, name)
    except NotFoundError:
        return False
    return True


def _what_there_is(cluster: Cluster, name: str | None, ids: list[str]) -> str:
    where = f"in namespace {cluster.namespace}"
    if not ids:
        return f"there are no jobs {where}" if name is None else f"there is no job {name} {where}, nor any other"
    near = difflib.get_close_matches(name or "", ids, n=3)
    if near:
        return f"there is no job {name} {where}; did you mean {' or '.join(near)}?"
    return f"there is no job {name} {where}; the latest are {', '.join(ids[:5])}"
