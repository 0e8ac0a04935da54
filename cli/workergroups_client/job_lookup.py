"""Find a job by its id, by the name of its pool or group, or, without a name, the latest one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from workergroups_api.vocabulary import Component

from . import names
from .cluster import Cluster
from .errors import DeadlineError, NotFoundError, UnreachableError
from .jobs import Job, JobRecord
from .pool import Pool
from .suggestions import did_you_mean
from .waiting import Tell, silently

Found = tuple[Pool, JobRecord]
_NAMED = 5


@contextmanager
def the_job(cluster: Cluster, name: str | None, tell: Tell = silently) -> Iterator[Job]:
    """Yield the job of that id, or the latest one of that pool or group, or without a name the latest of all.

    Raises:
        NotFoundError: There is no such job; the message names similar or recent ones.
    """
    with _pools(cluster, name, tell) as (pools, is_id):
        others: list[JobRecord] = []
        if name is not None and is_id:
            # Ids begin with the pool's name, unless the user chose them.
            pools.sort(key=lambda pool: not name.startswith(pool.name))
            for pool, record in _jobs_of(pools, tell):
                if record.id == name:
                    yield pool.job(name)
                    return
                others.append(record)
        elif found := _latest_first(_jobs_of(pools, tell)):
            pool, record = found[0]
            yield pool.job(record.id)
            return
    raise NotFoundError(_what_there_is(cluster, name, [record.id for record in others]))


@contextmanager
def all_jobs(cluster: Cluster, name: str | None, tell: Tell = silently) -> Iterator[list[Found]]:
    """Yield the jobs of a pool's or group's Ray cluster, or of all in the namespace, the latest first.

    The connections to the Ray clusters stay open until the block ends.
    """
    if name is not None:
        names.find(cluster, name)
    with _pools(cluster, name, tell) as (pools, _):
        yield _latest_first(_jobs_of(pools, tell))


@contextmanager
def _pools(cluster: Cluster, name: str | None, tell: Tell) -> Iterator[tuple[list[Pool], bool]]:
    """Yield a pool of each Ray cluster that may have the job, and whether the name must be the id of a job."""
    of_target = name is not None and _is_target(cluster, name)
    pools = [Pool(name, cluster, tell)] if name is not None and of_target else _one_of_each_cluster(cluster, tell)
    try:
        yield pools, not of_target
    finally:
        for pool in pools:
            pool.close()


def _jobs_of(pools: list[Pool], tell: Tell) -> Iterator[Found]:
    """Yield the jobs of each pool's Ray cluster; of several, skip those that do not answer."""
    for pool in pools:
        try:
            yield from ((pool, record) for record in pool.jobs())
        except (UnreachableError, DeadlineError) as error:
            if len(pools) == 1:
                raise
            tell(f"the jobs of pool {pool.name} could not be listed: {error}")


def _latest_first(found: Iterable[Found]) -> list[Found]:
    return sorted(found, key=lambda each: -(each[1].started or 0))


def _one_of_each_cluster(cluster: Cluster, tell: Tell) -> list[Pool]:
    """Return a pool of each Ray cluster that has a head; the others have no jobs."""
    pools = {names.ray_cluster(cluster, each): each.name for each in names.list_all(cluster, names.POOL)}
    return [
        Pool(f"{names.POOL}/{name}", cluster, tell)
        for ray_cluster, name in pools.items()
        if names.running_pods(cluster, ray_cluster, Component.HEAD)
    ]


def _is_target(cluster: Cluster, name: str) -> bool:
    try:
        names.find(cluster, name)
    except NotFoundError:
        return False
    return True


def _what_there_is(cluster: Cluster, name: str | None, ids: list[str]) -> str:
    """Return the message for a job that does not exist, with similar ids or else the latest ones."""
    where = f"in namespace {cluster.namespace}"
    if name is None:
        return f"there are no jobs {where}"
    if not ids:
        return f"there is no job {name} {where}, and no other job"
    if near := did_you_mean(name, ids):
        return f"there is no job {name} {where}; {near}"
    return f"there is no job {name} {where}; the latest are {', '.join(ids[:_NAMED])}"
