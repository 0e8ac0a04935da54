"""What kopf is for: it watches, keeps the indices, and wakes the clusters that an event concerns.

No handler changes an object, so kopf adds no finalizer and writes no annotation.
"""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import kopf

from workergroups_api.kube import DEPLOYMENT, POD, RAY_CLUSTER, RESOURCE_POOL, WORKER_GROUP, Kind, Kube
from workergroups_api.names import CLUSTER_LABEL, OPERATOR_FIELD_MANAGER
from workergroups_operator.membership import ClusterKey, Membership, cluster_of_pool, pools_of_group
from workergroups_operator.reconcile import reconcile
from workergroups_operator.settings import Settings
from workergroups_operator.work_queue import WorkQueue


def _selector(kind: Kind) -> tuple[str, str, str]:
    group, _, version = kind.api_version.rpartition("/")
    return group, version, kind.plural


def _identity(meta: kopf.Meta) -> tuple[str, str]:
    return str(meta.namespace), str(meta.name)


@kopf.on.startup()
async def start(settings: kopf.OperatorSettings, memo: kopf.Memo, **indices: Any) -> None:
    """Configure kopf, connect, and open the queue."""
    settings.posting.enabled = False
    for kind in (POD, RAY_CLUSTER, DEPLOYMENT):
        # Filtered by the server: a cluster full of pods must not cost the operator its memory.
        settings.watching.label_selectors[_selector(kind)] = CLUSTER_LABEL
    memo.resources = AsyncExitStack()
    client = await memo.resources.enter_async_context(Kube.connect(OPERATOR_FIELD_MANAGER))
    memo.membership = Membership(indices["pool_clusters"], indices["group_pools"])
    memo.queue = WorkQueue(partial(reconcile, client, memo.membership, Settings.from_environment()))
    memo.resources.push_async_callback(memo.queue.close)


@kopf.on.cleanup()
async def stop(memo: kopf.Memo, **_: Any) -> None:
    """End the reconciliations, then the connection."""
    await memo.resources.aclose()


@kopf.index(*_selector(RESOURCE_POOL))
def pool_clusters(meta: kopf.Meta, spec: Mapping[str, Any], **_: Any) -> dict[tuple[str, str], str]:
    """(namespace, pool) -> cluster."""
    return {_identity(meta): cluster_of_pool(str(meta.name), spec)}


@kopf.index(*_selector(WORKER_GROUP))
def group_pools(meta: kopf.Meta, spec: Mapping[str, Any], **_: Any) -> dict[tuple[str, str], tuple[str, ...]]:
    """(namespace, group) -> the pools that it names."""
    return {_identity(meta): pools_of_group(spec)}


@kopf.on.event(*_selector(RESOURCE_POOL))
async def pool_event(meta: kopf.Meta, spec: Mapping[str, Any], memo: kopf.Memo, **_: Any) -> None:
    """A pool came, changed or went."""
    for key in memo.membership.woken_by_pool(*_identity(meta), spec):
        memo.queue.wake(key)


@kopf.on.event(*_selector(WORKER_GROUP))
async def group_event(meta: kopf.Meta, spec: Mapping[str, Any], memo: kopf.Memo, **_: Any) -> None:
    """A group came, changed or went."""
    memo.queue.wake(memo.membership.home(str(meta.namespace), pools_of_group(spec)))


@kopf.on.event(*_selector(POD))
@kopf.on.event(*_selector(RAY_CLUSTER))
@kopf.on.event(*_selector(DEPLOYMENT))
async def child_event(meta: kopf.Meta, labels: Mapping[str, str], memo: kopf.Memo, **_: Any) -> None:
    """Something that belongs to a cluster came, changed or went."""
    cluster = labels.get(CLUSTER_LABEL)
    if cluster is not None:
        memo.queue.wake(ClusterKey(str(meta.namespace), cluster))
