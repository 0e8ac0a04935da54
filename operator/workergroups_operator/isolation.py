"""If the content of an object makes a step raise, find that object, so that the reconcile can be repeated without it.

The steps catch no exceptions for this: the search finds the object, whichever step raised.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypeVar

from workergroups_api.conditions import Explanation
from workergroups_api.manifest import RESOURCE_POOL, WORKER_GROUP, Kind
from workergroups_api.resource_pool import ResourcePool
from workergroups_api.vocabulary import Reason
from workergroups_api.worker_group import WorkerGroup
from workergroups_operator.decisions import decide
from workergroups_operator.desired import desired
from workergroups_operator.desired.token import FreshSecrets
from workergroups_operator.failures import Failures, internal_error
from workergroups_operator.image_checks import image_checks, needed_pods, unpulled
from workergroups_operator.observed import Observed, UnreadableObject, unreadable
from workergroups_operator.settings import Settings
from workergroups_operator.status import status
from workergroups_operator.templates import templates_of
from workergroups_operator.timings import Timings
from workergroups_operator.try_pods import not_kept, separated, trials_of

LOGGER = logging.getLogger(__name__)

Item = TypeVar("Item")
Step = Callable[[Observed], object]
# As if the API server refused every pod: then the steps read all that they may read.
_REFUSED = Explanation(Reason.PODS_REFUSED, "refused")


def pure_steps(settings: Settings, timings: Timings) -> Step:
    """Return a function that takes the pure steps that read what users wrote, and ignores what they return."""

    def take(observed: Observed) -> None:
        templates = templates_of(observed, settings)
        checks = image_checks(observed, templates)
        waiting, refusals = unpulled(checks, dict.fromkeys(trials_of(observed, templates, checks), _REFUSED))
        _, blocked = separated(refusals, observed, templates)
        needed_pods(checks, waiting, blocked)
        not_kept(blocked, refusals, templates_of(observed, settings, blocked.keys()))
        decisions = decide(observed, templates, {}, timings)
        desired(observed, templates, decisions, settings.network, FreshSecrets("", ""))
        status(observed, templates, decisions, Failures({}), timings, datetime.now(UTC))

    return take


def without_culprits(observed: Observed, step: Step) -> Observed:
    """Return what was observed, with each object as unreadable that makes `step` raise on its own.

    Pods are tried together with all good pools, since they need them, and groups with both. If all groups raise with
    these pods, a pod is to blame, and not a group. Bad pods count as absent.
    """
    bare = replace(observed, pools=(), groups=(), pods=())
    pools = _culprits(observed.pools, lambda some: step(replace(bare, pools=some)))
    with_pools = replace(bare, pools=_others(observed.pools, pools))
    pods = _culprits(observed.pods, lambda some: step(replace(with_pools, pods=some)))
    with_pods = replace(with_pools, pods=_others(observed.pods, pods))
    groups = _culprits(observed.groups, lambda some: step(replace(with_pods, groups=some)))
    if len(groups) == len(observed.groups) > 1:
        groups = _culprits(observed.groups, lambda some: step(replace(with_pools, groups=some)))
    with_groups = replace(with_pods, groups=_others(observed.groups, groups))
    pods += _culprits(with_pods.pods, lambda some: step(replace(with_groups, pods=some)))
    for pod, error in pods:
        LOGGER.error("%s: pod %s is ignored", observed.key, pod["metadata"].get("name"), exc_info=error)
    odd = [_unreadable(RESOURCE_POOL, pool, error) for pool, error in pools]
    odd += [_unreadable(WORKER_GROUP, group, error) for group, error in groups]
    return replace(with_groups, pods=_others(observed.pods, pods), unreadable=(*observed.unreadable, *odd))


def _culprits(items: tuple[Item, ...], step: Callable[[tuple[Item, ...]], object]) -> list[tuple[Item, Exception]]:
    """Find the items that make the step raise on their own, by bisection: a few among many cost little."""
    error = _raised(items, step)
    if error is None:
        return []
    if len(items) <= 1:
        return [(item, error) for item in items]
    half = len(items) // 2
    return [*_culprits(items[:half], step), *_culprits(items[half:], step)]


def _raised(items: tuple[Item, ...], step: Callable[[tuple[Item, ...]], object]) -> Exception | None:
    try:
        step(items)
    except Exception as error:
        return error
    return None


def _others(items: tuple[Item, ...], culprits: Sequence[tuple[Item, Exception]]) -> tuple[Item, ...]:
    found = {id(item) for item, _ in culprits}
    return tuple(item for item in items if id(item) not in found)


def _unreadable(kind: Kind, subject: ResourcePool | WorkerGroup, error: Exception) -> UnreadableObject:
    LOGGER.error("%s %s/%s is ignored", kind.kind, subject.namespace, subject.name, exc_info=error)
    way_out = (
        "the operator cannot handle this object and serves the others: change its spec, or delete it; if the spec is "
        "correct, report this with the operator's log"
    )
    return unreadable(kind, subject, internal_error(error, way_out))
