"""The status of the objects of a cluster whose reconcile failed as a whole: the state is unknown."""

from collections.abc import Iterator
from datetime import datetime

from workergroups_api.conditions import Condition, Explanation, Finding, find, merge
from workergroups_api.manifest import RESOURCE_POOL, WORKER_GROUP
from workergroups_api.vocabulary import ConditionType
from workergroups_operator.observed import Observed
from workergroups_operator.status.conclusion import StatusUpdate
from workergroups_operator.status.unreadable import unreadable


def unknown(observed: Observed, why: Explanation, now: datetime) -> Iterator[StatusUpdate]:
    """Set each condition of each object to Unknown, and keep the counters of the operator.

    What an object that cannot be read reports is true whatever else exists.
    """
    yield from (unreadable(odd, now) for odd in observed.unreadable)
    for pool in observed.pools:
        conditions, ready = _unknown(pool.status.conditions, why, pool.generation, now)
        before = pool.status.model_copy(update={"reservation": None})
        after = before.model_copy(update={"conditions": conditions, "deadline": None, "ready_nodes": None})
        was = find(pool.status.conditions, ConditionType.READY)
        yield StatusUpdate(RESOURCE_POOL, pool.metadata, before, after, was, ready)
    for group in observed.groups:
        conditions, ready = _unknown(group.status.conditions, why, group.generation, now)
        last = group.status.model_copy(update={"ranks": None})
        then = last.model_copy(update={"conditions": conditions, "deadline": None, "ready_ranks": None})
        was = find(group.status.conditions, ConditionType.READY)
        yield StatusUpdate(WORKER_GROUP, group.metadata, last, then, was, ready)


def _unknown(
    previous: tuple[Condition, ...], why: Explanation, generation: int, now: datetime
) -> tuple[tuple[Condition, ...], Condition]:
    known = (condition.type for condition in previous)
    types = dict.fromkeys(
        [*known, ConditionType.READY, ConditionType.PROGRESSING, ConditionType.FAILED, ConditionType.STALLED]
    )
    findings = [Finding(type=type_, status="Unknown", reason=why.reason, message=why.message) for type_ in types]
    conditions = merge(previous, findings, generation, now)
    return conditions, next(condition for condition in conditions if condition.type == ConditionType.READY)
