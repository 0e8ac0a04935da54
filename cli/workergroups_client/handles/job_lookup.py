"""Find a job by its id, by the name of its pool or group, or, without a name, the latest one.

Jobs that ended with Ray's head are found, too, if they have a kept record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from ..api_server.cluster import Cluster
from ..errors import ClientError, DeadlineError, NotFoundError, NotRunningError, UnreachableError
from ..jobs.jobs import AbsentJob, Job
from ..jobs.kept_records import merged
from ..jobs.records import JobRecord
from ..objects import names
from ..suggestions import did_you_mean
from ..waiting import Lasting, Tell, silently
from .pool import Pool

if TYPE_CHECKING:
    from workergroups_api.job_record import KeptJobRecord

Found = tuple[Pool, JobRecord]
_NAMED = 5


@contextmanager
def the_job(cluster: Cluster, name: str | None, tell: Tell = silently) -> Iterator[Job]:
    """Yield the job of that id, or the latest one of that pool or group, or without a name the latest of all.

    The name of a pool or group is the id of a job only if the job is one of its Ray cluster.

    Of a job with several attempts, it is the latest one, unless the name is the id of another.

    Raises:
        NotFoundError: There is no such job; the message names similar or recent ones.
    """
    with _pools(cluster, name, tell) as (pools, is_id):
        others: list[JobRecord] = []
        if name is not None and is_id:
            # Ids begin with the pool's name, unless the user chose them.
            pools.sort(key=lambda pool: not name.startswith(pool.name))
            for pool, record in _jobs_of(pools, tell):
                if name in (record.id, record.job):
                    yield _job(pool, record)
                    return
                others.append(record)
        elif found := _latest_first(_jobs_of(pools, tell, is_named=name is not None)):
            # A job may have the name of its pool, or of a group on it.
            yield _job(*next((each for each in found if name in (each[1].id, each[1].job)), found[0]))
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
        yield _latest_first(_jobs_of(pools, tell, is_named=name is not None))


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


def _job(pool: Pool, record: JobRecord) -> Job:
    return AbsentJob(record, pool.name, pool.kept) if record.is_kept else pool.job(record.id)


def _jobs_of(pools: list[Pool], tell: Tell, *, is_named: bool = False) -> Iterator[Found]:
    """Yield the jobs of each pool's Ray cluster; of several, skip those that do not answer and have no kept records.

    `is_named` is whether the user means this pool.
    """
    for pool in pools:
        kept = _kept(pool, tell)
        try:
            asked = pool.jobs()
        except (UnreachableError, DeadlineError, NotRunningError) as error:
            is_silent = isinstance(error, NotRunningError) and not is_named
            if len(pools) == 1 and not kept and not is_silent:
                raise
            if not is_silent:
                tell(Lasting(f"the jobs of pool {pool.name} could not be listed: {error}"))
            asked = None
        heads = pool.kept.heads() if kept else set()
        yield from ((pool, record) for record in merged(asked, kept, heads))
        _note_ends(pool, asked or (), kept)


def _kept(pool: Pool, tell: Tell) -> list[KeptJobRecord]:
    try:
        return pool.kept.all()
    except ClientError as error:
        tell(Lasting(f"the kept records of the jobs of pool {pool.name} cannot be read: {error}"))
        return []


def _note_ends(pool: Pool, asked: Iterable[JobRecord], kept: Iterable[KeptJobRecord]) -> None:
    """Note how jobs ended that were not followed, as long as Ray knows it."""
    running = {record.id for record in kept if record.ended is None}
    with suppress(ClientError):  # such as without the right to
        for record in asked:
            if record.has_ended and record.id in running:
                pool.kept.note_end(record)


def _latest_first(found: Iterable[Found]) -> list[Found]:
    return sorted(found, key=lambda each: -(each[1].started or 0))


def _one_of_each_cluster(cluster: Cluster, tell: Tell) -> list[Pool]:
    """Return a pool of each Ray cluster."""
    pools = {names.ray_cluster(cluster, each): each.name for each in names.list_all(cluster, names.POOL)}
    return [Pool(f"{names.POOL}/{name}", cluster, tell) for name in pools.values()]


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
