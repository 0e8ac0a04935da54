"""kopf's handlers: they watch, keep the indices, and queue the clusters that an event concerns.

No handler changes an object, so kopf adds no finalizer and writes no annotation.
"""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import Any

import kopf

from workergroups_api import manifest as kinds
from workergroups_api.children import CHILD_KINDS
from workergroups_api.manifest import RESOURCE_POOL, WORKER_GROUP, Kind
from workergroups_api.names import CLUSTER_LABEL, OPERATOR_FIELD_MANAGER, agent_name
from workergroups_api.references import cluster_of_pool, pools_of_group
from workergroups_kube import API_ERRORS, Kube
from workergroups_operator.apply import Applier
from workergroups_operator.connection import connect
from workergroups_operator.events import Events
from workergroups_operator.failing_reconciles import FailingReconciles
from workergroups_operator.heartbeats import Heartbeats
from workergroups_operator.leadership import FencedKube
from workergroups_operator.membership import ClusterKey, Membership
from workergroups_operator.publish import Publisher
from workergroups_operator.reconcile import Reconciler
from workergroups_operator.settings import served_namespaces
from workergroups_operator.timings import Timings
from workergroups_operator.try_pods import PodTrials
from workergroups_operator.watches import Watches, WatchRetries
from workergroups_operator.work_queue import WorkQueue

LOGGER = logging.getLogger(__name__)
# An event about one of these queues its cluster. A Lease is renewed every few seconds: see `lease_event`.
WATCHED = (kinds.POD, *(kind for kind in CHILD_KINDS if kind is not kinds.LEASE))
# Of kopf's own requests.
CONNECT_SECONDS = 5.0
REQUEST_SECONDS = 30.0
# kopf keeps a task for each object until no event has followed for this time.
IDLE_SECONDS = 0.5


def _selector(kind: Kind) -> tuple[str, str, str]:
    return kind.group, kind.version, kind.plural


def _identity(meta: kopf.Meta) -> tuple[str, str]:
    return str(meta.namespace), str(meta.name)


@kopf.on.login(backoff=Timings().watch_retry)
async def log_in(memo: kopf.Memo, **arguments: Any) -> kopf.AiohttpSession:
    """Connect kopf, at the start and each time that the API server refuses the credentials."""
    return await connect(memo.watches, **arguments)


@kopf.on.startup(errors=kopf.ErrorsMode.PERMANENT)
async def start(settings: kopf.OperatorSettings, memo: kopf.Memo, **indices: Any) -> None:
    """Configure kopf, connect, and open the queue. Expects what `__main__` puts into the memo."""
    timings: Timings = memo.timings
    _configure(settings, timings)
    memo.watches = Watches(timings)
    memo.resources = AsyncExitStack()
    client = await memo.resources.enter_async_context(FencedKube.connect(OPERATOR_FIELD_MANAGER, timings.request))
    memo.membership = Membership(indices["pool_clusters"], indices["cluster_pools"], indices["pool_groups"])
    memo.heartbeats = Heartbeats(timings)
    memo.queue = _queue(client, memo)
    memo.resources.push_async_callback(memo.queue.close)
    background = {"heartbeats": _listen(memo.heartbeats, memo.queue, timings.lease_check)}
    if memo.leadership is not None:
        client.leadership = memo.leadership
        background["leadership"] = memo.leadership.keep()
    if served_namespaces():
        settings.scanning.disabled = True  # kopf would list all namespaces, and watch definitions
        background["KubeRay"] = _wait_for_kuberay(client, memo.watches, timings.kuberay_check)
    for name, coroutine in background.items():
        task = asyncio.create_task(coroutine, name=name)
        task.add_done_callback(partial(_stop_with, memo.stop))
        memo.resources.push_async_callback(_end, task)


def _queue(client: Kube, memo: kopf.Memo) -> WorkQueue[ClusterKey]:
    def enqueue(key: ClusterKey) -> None:
        memo.queue.add(key)

    timings: Timings = memo.timings
    trials = PodTrials(client, enqueue, timings)
    applier = Applier(client, enqueue, timings)
    events = Events(client)
    publisher = Publisher(client, events, enqueue, timings, memo.metrics)
    steps = (trials.writes, applier.writes, publisher.writes)
    for each in (events, *steps):
        memo.resources.push_async_callback(each.close)
    memo.metrics.silences = memo.heartbeats.silences
    memo.metrics.is_leading = lambda: memo.leadership is None or memo.leadership.is_sure
    reconciler = Reconciler(
        client,
        memo.membership,
        memo.heartbeats,
        trials,
        applier,
        publisher,
        FailingReconciles(timings),
        memo.settings,
        timings,
        memo.metrics,
    )

    def write_seconds(namespace: str) -> float:
        return max(writes.seconds(namespace) for writes in steps)

    return WorkQueue(reconciler.reconcile, write_seconds, timings, memo.metrics.waited)


def _configure(settings: kopf.OperatorSettings, timings: Timings) -> None:
    settings.posting.enabled = False
    settings.networking.request_timeout = REQUEST_SECONDS
    settings.networking.connect_timeout = CONNECT_SECONDS
    settings.networking.error_backoffs = WatchRetries(timings.watch_retry)
    settings.queueing.idle_timeout = IDLE_SECONDS
    settings.watching.server_timeout = max(1, round(timings.watch))  # the API server takes whole seconds
    settings.watching.inactivity_timeout = timings.watch + timings.watch_late
    for kind in (*WATCHED, kinds.LEASE):
        # The API server filters, so that the operator's memory does not grow with all pods of the Kubernetes cluster.
        settings.watching.label_selectors[_selector(kind)] = CLUSTER_LABEL


async def _listen(heartbeats: Heartbeats, queue: WorkQueue[ClusterKey], seconds: float) -> None:
    """Queue the clusters whose agent is late, every `seconds` seconds."""
    while True:
        for key in heartbeats.late():
            queue.add(key)
        await asyncio.sleep(seconds)


async def _wait_for_kuberay(client: Kube, watches: Watches, seconds: float) -> None:
    """Return once KubeRay has been installed, if kopf watches RayClusters not yet: it looks for kinds at its start."""
    while True:
        await asyncio.sleep(seconds)
        if watches.include(kinds.RAY_CLUSTER.plural) or not watches.include(RESOURCE_POOL.plural):
            continue
        with suppress(*API_ERRORS):
            if await client.is_installed(kinds.RAY_CLUSTER):
                return


def _stop_with(stop: asyncio.Future[None], task: asyncio.Task[None]) -> None:
    """Stop the operator, as kopf does when one of its own tasks ends. Kubernetes starts it again."""
    if task.cancelled() or stop.done():
        return
    if (why := task.exception()) is not None:
        LOGGER.error("%s: %r; stopping", task.get_name(), why)
    else:
        LOGGER.warning("%s was installed after this process had looked for kinds; stopping", task.get_name())
    stop.set_result(None)


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


@kopf.on.probe()
async def watched(memo: kopf.Memo, **_: Any) -> None:
    """Fail the liveness probe if kopf no longer watches a kind."""
    if ended := memo.watches.ended():
        raise kopf.PermanentError(f"kopf no longer watches {', '.join(ended)}")


@kopf.on.cleanup()
async def stop(memo: kopf.Memo, **_: Any) -> None:
    """End the reconciliations, then the connection; another process may serve then."""
    await memo.resources.aclose()
    if memo.leadership is not None:
        await memo.leadership.end()
    # kopf waits for five seconds for the task with which it waits for this.
    memo.stop.cancel()


# Indexers are coroutines, since kopf calls functions in threads: on a busy machine, that costs more than they do.
@kopf.index(*_selector(RESOURCE_POOL))
async def pool_clusters(meta: kopf.Meta, spec: Mapping[str, Any], **_: Any) -> dict[tuple[str, str], str]:
    """Index (namespace, pool) -> cluster."""
    return {_identity(meta): cluster_of_pool(str(meta.name), spec)}


@kopf.index(*_selector(RESOURCE_POOL))
async def cluster_pools(meta: kopf.Meta, spec: Mapping[str, Any], **_: Any) -> dict[tuple[str, str], str]:
    """Index (namespace, cluster) -> pool."""
    return {(str(meta.namespace), cluster_of_pool(str(meta.name), spec)): str(meta.name)}


@kopf.index(*_selector(WORKER_GROUP))
async def pool_groups(
    meta: kopf.Meta, spec: Mapping[str, Any], **_: Any
) -> dict[tuple[str, str], tuple[str, tuple[str, ...]]]:
    """Index (namespace, pool) -> a group that names it, and all pools that the group names."""
    namespace, name = _identity(meta)
    pools = pools_of_group(name, spec)
    return {(namespace, pool): (name, pools) for pool in pools}


@kopf.on.event(*_selector(RESOURCE_POOL))
async def pool_event(meta: kopf.Meta, spec: Mapping[str, Any], memo: kopf.Memo, **_: Any) -> None:
    """Queue the clusters of a pool that was created, changed or deleted."""
    for key in memo.membership.enqueued_by_pool(*_identity(meta), spec):
        memo.queue.add(key)


@kopf.on.event(*_selector(WORKER_GROUP))
async def group_event(meta: kopf.Meta, spec: Mapping[str, Any], memo: kopf.Memo, **_: Any) -> None:
    """Queue the clusters of a group that was created, changed or deleted."""
    for key in memo.membership.owning_clusters(str(meta.namespace), pools_of_group(str(meta.name), spec)):
        memo.queue.add(key)


async def child_event(meta: kopf.Meta, labels: Mapping[str, str], memo: kopf.Memo, **_: Any) -> None:
    """Queue the cluster of a child or pod that was created, changed or deleted."""
    cluster = labels.get(CLUSTER_LABEL)
    if cluster is not None:
        memo.queue.add(ClusterKey(str(meta.namespace), cluster))


for _kind in WATCHED:
    kopf.on.event(*_selector(_kind))(child_event)


@kopf.on.event(*_selector(kinds.LEASE))
async def lease_event(
    meta: kopf.Meta, labels: Mapping[str, str], body: kopf.Body, type: str | None, memo: kopf.Memo, **_: Any
) -> None:
    """Queue the cluster of an agent whose Lease has news, or was deleted."""
    cluster = labels.get(CLUSTER_LABEL)
    # Anybody can put the label on a Lease, but only the agent's has this name.
    if cluster is None or meta.name != agent_name(cluster):
        return
    key = ClusterKey(str(meta.namespace), cluster)
    is_news = memo.heartbeats.note(key, dict(body))
    if is_news or type == "DELETED":
        memo.queue.add(key)
