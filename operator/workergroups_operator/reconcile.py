"""The loop, for one RayCluster with all its pools and groups. `Reconciler._steps` is one reconcile, in eight steps:

1. observe: read what exists from the API server.
2. templates: build the pod templates.
3. try: ask the API server by dry runs whether it would take the pods that are missing, and a node whether the images
   of a restart can be pulled.
4. decide: bundles, incarnations, restarts, and whether the agent's reports count.
5. desired: build the manifests of everything that should exist.
6. apply: write those that differ from what exists.
7. status: conclude what is true of each object.
8. publish: write the statuses that changed, and delete finished groups whose time is over.

Steps one, three, six and eight talk to the API server; the others are pure.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Concatenate, ParamSpec, TypeVar

from workergroups_api.conditions import Explanation
from workergroups_api.vocabulary import Reason
from workergroups_common.text import plain
from workergroups_kube import API_ERRORS, Kube, api_error_message
from workergroups_operator.apply import Applier
from workergroups_operator.decisions import decide
from workergroups_operator.desired import desired
from workergroups_operator.desired.token import FreshSecrets
from workergroups_operator.evicted_pods import EvictedPods
from workergroups_operator.failing_reconciles import FailingReconciles
from workergroups_operator.failures import internal_error
from workergroups_operator.heartbeats import Heartbeats
from workergroups_operator.image_checks import image_checks, needed_pods, unpulled
from workergroups_operator.isolation import pure_steps, without_culprits
from workergroups_operator.members import observe_readable_members
from workergroups_operator.membership import ClusterKey, Membership
from workergroups_operator.metrics import Metrics
from workergroups_operator.observe import OversizedChild, observe
from workergroups_operator.observed import Observed
from workergroups_operator.policy.cluster_limits import within_limits
from workergroups_operator.publish import Publisher
from workergroups_operator.settings import Settings
from workergroups_operator.status import status
from workergroups_operator.status.unknown import unknown
from workergroups_operator.templates import templates_of
from workergroups_operator.timings import Timings
from workergroups_operator.try_pods import PodTrials, not_kept, separated, trials_of
from workergroups_operator.work_queue import Result

LOGGER = logging.getLogger(__name__)
_UNREAD = (
    "the operator cannot read what exists for cluster {}, so its state is unknown: {}; the operator retries, and "
    "what runs keeps running"
)
# A pure step over that many objects takes some milliseconds.
_FEW = 32
_WAY_OUT = (
    "reconciling cluster {} failed, and no single object is the cause, so its state is unknown: see the operator's "
    "log and report it; what runs keeps running"
)

Arguments = ParamSpec("Arguments")
Found = TypeVar("Found")


@dataclass(frozen=True)
class Reconciler:
    """Reads one cluster's world, changes it to what its objects ask for, and reports what is true."""

    client: Kube
    membership: Membership
    heartbeats: Heartbeats
    pod_trials: PodTrials
    applier: Applier
    publisher: Publisher
    failing: FailingReconciles
    settings: Settings
    timings: Timings
    metrics: Metrics
    evicted_pods: EvictedPods = field(default_factory=EvictedPods)

    async def _steps(self, observed: Observed) -> Result:
        templates = await _apart(observed, templates_of, self.settings)
        checks = await _apart(observed, image_checks, templates)
        tried = await self.pod_trials.answers(observed.key, await _apart(observed, trials_of, templates, checks))
        waiting, refusals = unpulled(checks, tried.refused)
        refused, blocked = separated(refusals, observed, templates)
        pods, blocked = needed_pods(checks, waiting, blocked), waiting | blocked
        if blocked:
            templates = templates_of(observed, self.settings, blocked.keys())
            refused |= not_kept(blocked, refusals, templates)
        decisions = await _apart(observed, decide, templates, refused, self.timings, blocked)
        wanted = await _apart(observed, desired, templates, decisions, self.settings.network, FreshSecrets.random())
        failures = await self.applier.apply(observed, decisions, wanted, pods)
        statuses = await _apart(observed, status, templates, decisions, failures, self.timings, datetime.now(UTC))
        unpublished = await self.publisher.publish(observed.key, statuses.updates)
        undeleted = await self.publisher.delete(observed.key, statuses.expired)
        requeue_after = statuses.requeue_after
        if requeue_after is not None:
            requeue_after = min(requeue_after, tried.look_again_seconds)
        failure = unpublished or undeleted or failures.summary
        pause = self.timings.ending if failures.are_of_ending_namespace else 0.0
        return Result(requeue_after, failure, is_urgent=unpublished is not None, pause=pause)

    async def _observe(self, key: ClusterKey) -> Observed:
        seen = within_limits(await observe(self.client, self.membership, self.heartbeats, key))
        return replace(seen, evicted_pods=self.evicted_pods.update(key, seen.pods))

    async def reconcile(self, key: ClusterKey) -> Result:
        """Reconcile the cluster; never raises, whatever exists there."""
        began = asyncio.get_running_loop().time()
        result = await self._reconcile(key)
        seconds = asyncio.get_running_loop().time() - began
        self.metrics.reconciled(seconds, has_failed=result.failure is not None)
        return result

    async def _reconcile(self, key: ClusterKey) -> Result:
        if not self.membership.has_members(key):
            return self._forget(key)  # Kubernetes removes what belonged to its pools, and each removal is an event.
        try:
            async with asyncio.timeout(self.timings.reconcile) as deadline:
                result = await self._isolated(key)
        except OversizedChild as error:
            return await self._report_unknown(key, Explanation(Reason.OBJECT_TOO_LARGE, str(error)), at_once=True)
        except API_ERRORS as error:
            why = Explanation(Reason.READ_FAILED, _UNREAD.format(key.name, plain(api_error_message(error), 300)))
            return await self._report_unknown(key, why, at_once=deadline.expired())
        except Exception as error:
            LOGGER.exception("%s: the reconcile failed, and no single object is the cause", key)
            return await self._report_unknown(key, internal_error(error, _WAY_OUT.format(key.name)), at_once=True)
        self.failing.forget(key)
        return self._forget(key) if result == Result(None) else result

    def _forget(self, key: ClusterKey) -> Result:
        """Forget a cluster that has neither pools nor groups."""
        memories = self.failing, self.heartbeats, self.evicted_pods, self.applier, self.pod_trials, self.publisher
        for memory in memories:
            memory.forget(key)
        return Result(None)

    async def _isolated(self, key: ClusterKey) -> Result:
        """Reconcile; if that raises, reconcile without the culprits."""
        try:
            return await self._steps(await self._observe(key))
        except (*API_ERRORS, OversizedChild):
            raise
        except Exception:
            LOGGER.exception("%s: the reconcile failed; repeating it without the object that is the cause", key)
        found = await self._observe(key)
        return await self._steps(await _apart(found, without_culprits, pure_steps(self.settings, self.timings)))

    async def _report_unknown(self, key: ClusterKey, why: Explanation, *, at_once: bool) -> Result:
        """Report that the state is unknown, at once or if reconciles have failed for a while; then retry."""
        try:
            async with asyncio.timeout(self.timings.reconcile):
                observed, are_all = await observe_readable_members(self.client, self.membership, key)
                doubt = why if at_once else self.failing.doubt(key, why, are_all_read=are_all)
                if doubt:
                    updates = tuple(unknown(observed, doubt, datetime.now(UTC)))
                    await self.publisher.publish(key, updates, are_all=are_all)
        except API_ERRORS:
            self.failing.forget(key)
        return Result(None, why.message, is_urgent=True)


async def _apart(
    observed: Observed,
    step: Callable[Concatenate[Observed, Arguments], Found],
    *arguments: Arguments.args,
    **keywords: Arguments.kwargs,
) -> Found:
    """Take a pure step; of a large cluster in another thread, so that no other namespace waits until it ends."""
    objects = (observed.pools, observed.groups, observed.unreadable, observed.pods)
    if sum(map(len, objects)) <= _FEW:
        return step(observed, *arguments, **keywords)
    return await asyncio.to_thread(step, observed, *arguments, **keywords)
