"""What kopf is for: it watches, keeps the indices, and enqueues the clusters that an event concerns.

No handler changes an object, so kopf adds no finalizer and writes no annotation.
"""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack, suppress
from itertools import repeat
from typing import Any

import kopf

from workergroups_api import manifest as kinds
from workergroups_api.kube import Kube
from workergroups_api.manifest import RESOURCE_POOL, WORKER_GROUP, Kind
from workergroups_api.names import CLUSTER_LABEL, OPERATOR_FIELD_MANAGER
from workergroups_operator.connection import connect
from workergroups_operator.heartbeats import Heartbeats
from workergroups_operator.membership import ClusterKey, Membership, cluster_of_pool, pools_of_group
from workergroups_operator.reconcile import Reconciler
from workergroups_operator.settings import Settings
from workergroups_operator.try_pods import PodTrials
from workergroups_operator.work_queue import WorkQueue

# Everything that the operator makes, and the pods that come of it.
CHILDREN = (
    kinds.POD,
    kinds.RAY_CLUSTER,
    kinds.DEPLOYMENT,
    kinds.CONFIG_MAP,
    kinds.SECRET,
    kinds.SERVICE_ACCOUNT,
    kinds.ROLE,
    kinds.ROLE_BINDING,
)
HEARTBEAT_SECONDS = 1.0
WATCH_RETRY_SECONDS = 2.0
CONNECT_SECONDS = 5.0


class WatchRetries:
    """How long kopf waits before each new try of a watch: always the same, for as long as it takes.

    With kopf's own back-off, up to 21 seconds, the operator would see nothing for that long after the API server is
    back; and after a minute of refusals kopf would give up and end the operator.
    """

    def __iter__(self) -> Iterator[float]:
        return repeat(WATCH_RETRY_SECONDS)


def _selector(kind: Kind) -> tuple[str, str, str]:
    return kind.group, kind.version, kind.plural


def _identity(meta: kopf.Meta) -> tuple[str, str]:
    return str(meta.namespace), str(meta.name)


kopf.on.login()(connect)


@kopf.on.startup()
async def start(settings: kopf.OperatorSettings, memo: kopf.Memo, **indices: Any) -> None:
    """Configure kopf, connect, and open the queue."""
    settings.posting.enabled = False
    settings.networking.request_timeout = 30
    settings.networking.connect_timeout = CONNECT_SECONDS
    settings.networking.error_backoffs = WatchRetries()
    for kind in (*CHILDREN, kinds.LEASE):
        # Filtered by the server: a cluster full of pods must not cost the operator its memory.
        settings.watching.label_selectors[_selector(kind)] = CLUSTER_LABEL
    memo.resources = AsyncExitStack()
    client = await memo.resources.enter_async_context(Kube.connect(OPERATOR_FIELD_MANAGER))
    memo.membership = Membership(indices["pool_clusters"], indices["cluster_pools"], indices["pool_groups"])
    memo.heartbeats = Heartbeats()
    trials = PodTrials(client, lambda key: memo.queue.add(key))
    memo.resources.push_async_callback(trials.close)
    reconciler = Reconciler(client, memo.membership, memo.heartbeats, trials, Settings.from_environment())
    memo.queue = WorkQueue(reconciler.reconcile)
    memo.resources.push_async_callback(memo.queue.close)
    listening = asyncio.create_task(_listen(memo.heartbeats, memo.queue), name="heartbeats")
    memo.resources.push_async_callback(_end, listening)


async def _listen(heartbeats: Heartbeats, queue: WorkQueue[ClusterKey]) -> None:
    """Have those clusters looked at whose agent is late."""
    while True:
        for key in heartbeats.late():
            queue.add(key)
        await asyncio.sleep(HEARTBEAT_SECONDS)


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


@kopf.on.cleanup()
async def stop(memo: kopf.Memo, **_: Any) -> None:
    """End the reconciliations, then the connection."""
    await memo.resources.aclose()


@kopf.index(*_selector(RESOURCE_POOL))
def pool_clusters(meta: kopf.Meta, spec: Mapping[str, Any], **_: Any) -> dict[tuple[str, str], str]:
    """(namespace, pool) -> cluster."""
    return {_identity(meta): cluster_of_pool(str(meta.name), spec)}


@kopf.index(*_selector(RESOURCE_POOL))
def cluster_pools(meta: kopf.Meta, spec: Mapping[str, Any], **_: Any) -> dict[tuple[str, str], str]:
    """(namespace, cluster) -> pool."""
    return {(str(meta.namespace), cluster_of_pool(str(meta.name), spec)): str(meta.name)}


@kopf.index(*_selector(WORKER_GROUP))
def pool_groups(
    meta: kopf.Meta, spec: Mapping[str, Any], **_: Any
) -> dict[tuple[str, str], tuple[str, tuple[str, ...]]]:
    """(namespace, pool) -> a group that names it, and all pools that the group names."""
    namespace, name = _identity(meta)
    pools = pools_of_group(name, spec)
    return {(namespace, pool): (name, pools) for pool in pools}


@kopf.on.event(*_selector(RESOURCE_POOL))
async def pool_event(meta: kopf.Meta, spec: Mapping[str, Any], memo: kopf.Memo, **_: Any) -> None:
    """A pool came, changed or went."""
    for key in memo.membership.enqueued_by_pool(*_identity(meta), spec):
        memo.queue.add(key)


@kopf.on.event(*_selector(WORKER_GROUP))
async def group_event(meta: kopf.Meta, spec: Mapping[str, Any], memo: kopf.Memo, **_: Any) -> None:
    """A group came, changed or went."""
    for key in memo.membership.owning_clusters(str(meta.namespace), pools_of_group(str(meta.name), spec)):
        memo.queue.add(key)


async def child_event(meta: kopf.Meta, labels: Mapping[str, str], memo: kopf.Memo, **_: Any) -> None:
    """Something that belongs to a cluster came, changed or went."""
    cluster = labels.get(CLUSTER_LABEL)
    if cluster is not None:
        memo.queue.add(ClusterKey(str(meta.namespace), cluster))


for _kind in CHILDREN:
    kopf.on.event(*_selector(_kind))(child_event)


@kopf.on.event(*_selector(kinds.LEASE))
async def lease_event(
    meta: kopf.Meta, labels: Mapping[str, str], body: kopf.Body, type: str | None, memo: kopf.Memo, **_: Any
) -> None:
    """An agent showed itself, or its Lease is gone."""
    cluster = labels.get(CLUSTER_LABEL)
    if cluster is None:
        return
    key = ClusterKey(str(meta.namespace), cluster)
    is_news = memo.heartbeats.note(key, dict(body))
    if is_news or type == "DELETED":
        memo.queue.add(key)
