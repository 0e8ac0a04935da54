"""Step one: read the state of one RayCluster's world from the API server."""

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import replace

from workergroups_api import manifest as kinds
from workergroups_api import names
from workergroups_api.children import child_names
from workergroups_api.manifest import Kind, Manifest
from workergroups_api.plan import ClusterPlan
from workergroups_api.vocabulary import Component
from workergroups_common.bounded_json import parse
from workergroups_kube import API_ERRORS, OBJECT_LIMITS, Kube, RefusedObject, api_error_message
from workergroups_operator.heartbeats import Heartbeats
from workergroups_operator.kueue import ASIDE_SECONDS, queueing
from workergroups_operator.lean import lean_event, lean_pod
from workergroups_operator.members import named_pools, observe_members
from workergroups_operator.membership import ClusterKey, Membership
from workergroups_operator.observed import Observed, is_running, node_group_of
from workergroups_operator.pod_domains import pod_domains
from workergroups_operator.policy.generated_names import without_generated_names
from workergroups_operator.policy.idle import may_be_deleted
from workergroups_operator.policy.lifetime import is_of_a_present_pool
from workergroups_operator.policy.pod_owners import pods_by_owner, replica_sets_of
from workergroups_operator.policy.suspension import suspended_pools

LOGGER = logging.getLogger(__name__)
_POD_SECURITY = "pod-security.kubernetes.io/enforce"
# The agent's pods belong to one ReplicaSet, or to two while its Deployment changes.
MAX_REPLICA_SETS = 8
# Of each object that the operator makes, except a RayCluster, which has the specs of many pools. A Role names a group
# twice, and a plan has room for some thousands.
CHILD_LIMITS = replace(OBJECT_LIMITS, values=20_000)
# Only foreign edits of a Lease can bring news during that many readings in a row.
MAX_READINGS = 3


class OversizedChild(Exception):
    """One of the operator's objects was made larger than the operator reads."""


async def observe(client: Kube, membership: Membership, heartbeats: Heartbeats, key: ClusterKey) -> Observed:
    """Read a cluster's pools, groups, children and pods, and what its agent shows.

    The agent writes statuses before it renews the Lease that vouches for them. So the Lease is read before the
    statuses, and if the watch reports news of it meanwhile, everything is read again.
    """
    for _ in range(MAX_READINGS):
        news = heartbeats.news(key)
        seen = await _read(client, membership, key)
        if heartbeats.news(key) == news:
            break
    seen = await _with_signs(client, heartbeats, seen)
    if any(may_be_deleted(pool, seen) for pool in seen.pools):
        # The index of groups is only a hint, and knows nothing of those whose first pool is on another cluster.
        seen = replace(seen, named_pools=await named_pools(client, key.namespace))
    return seen


async def _read(client: Kube, membership: Membership, key: ClusterKey) -> Observed:
    children, pods = await asyncio.gather(_children(client, key), _pods(client, key))
    ray_cluster = children.get((kinds.RAY_CLUSTER.kind, key.name))
    deployment = children.get((kinds.DEPLOYMENT.kind, names.agent_name(key.name)))
    members, replica_sets, queued, restricted = await asyncio.gather(
        observe_members(client, membership, key),
        _replica_sets(client, key, pods),
        queueing(client, key.namespace, ray_cluster),
        _is_restricted(client, key),
    )
    by_owner = pods_by_owner(key.name, pods, ray_cluster, deployment, replica_sets)
    seen = replace(
        members,
        children=children,
        pods=by_owner.own,
        previous_pods=by_owner.previous,
        foreign_pods=by_owner.foreign,
        plan=_plan(children.get((kinds.CONFIG_MAP.kind, names.plan_name(key.name)))),
        queueing=queued,
        restricted=restricted,
    )
    return replace(seen, domains=await pod_domains(client, seen))


async def _replica_sets(client: Kube, key: ClusterKey, pods: Iterable[Manifest]) -> list[Manifest]:
    """Read the ReplicaSets between the agent's Deployment and its pods."""
    named = sorted(replica_sets_of(pods))[:MAX_REPLICA_SETS]
    found = await asyncio.gather(*(_replica_set(client, key, name) for name in named))
    return [body for body in found if body is not None]


async def _replica_set(client: Kube, key: ClusterKey, name: str) -> Manifest | None:
    try:
        return await client.get(kinds.REPLICA_SET, key.namespace, name)
    except RefusedObject as error:
        LOGGER.warning("%s: ReplicaSet %s is ignored: %s", key, name, error)
        return None


async def _is_restricted(client: Kube, key: ClusterKey) -> bool:
    try:
        namespace = await client.get(kinds.NAMESPACE, None, key.namespace, on_behalf_of=key.namespace)
    except RefusedObject as error:
        LOGGER.warning("namespace %s is ignored: %s", key.namespace, error)
        return False
    labels = (namespace or {}).get("metadata", {}).get("labels") or {}
    return labels.get(_POD_SECURITY) == "restricted"


async def _with_signs(client: Kube, heartbeats: Heartbeats, seen: Observed) -> Observed:
    """Return what was seen, with what the agent shows, and KubeRay's complaint if pods are missing."""
    lease = seen.child(kinds.LEASE, names.agent_name(seen.key.name))
    heartbeats.note(seen.key, lease if lease and is_of_a_present_pool(lease, seen) else None)
    has_agent = any(map(is_running, seen.pods_of(Component.AGENT)))
    heartbeat = heartbeats.update(
        seen.key, seen.head, has_pod=has_agent, is_empty=not (seen.pods or seen.previous_pods)
    )
    complaint = await _complaint(client, seen) if _lacks_pods(seen) else None
    return replace(seen, agent=heartbeat, complaint=complaint)


def _lacks_pods(seen: Observed) -> bool:
    if seen.ray_cluster is None:
        return False
    suspended = suspended_pools(seen)
    wanted = {node_group_of(pool): pool.spec.nodes for pool in seen.pools if pool.name not in suspended}
    return not seen.pods_of(Component.HEAD) or any(
        len(seen.pods_of(Component.WORKER, name)) < n for name, n in wanted.items()
    )


async def _complaint(client: Kube, seen: Observed) -> str | None:
    """Return KubeRay's latest warning about the cluster, if it can be read at once."""
    uid = (seen.ray_cluster or {})["metadata"]["uid"]
    events = kinds.CORE_EVENT, seen.key.namespace, lean_event, _time_of_event
    try:
        async with asyncio.timeout(ASIDE_SECONDS):
            latest = await client.latest(*events, field_selector=f"involvedObject.uid={uid},type=Warning")
    except (RefusedObject, *API_ERRORS) as error:
        LOGGER.warning("%s: KubeRay's events are ignored: %s", seen.key, api_error_message(error)[:500])
        return None
    return without_generated_names(str(latest.get("message"))) if latest else None


def _time_of_event(event: Manifest) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime"))


async def _pods(client: Kube, key: ClusterKey) -> tuple[Manifest, ...]:
    """Read the pods with the cluster's label, except those that exceed a limit, which none of ours does."""
    found: list[Manifest] = []
    label = f"{names.CLUSTER_LABEL}={key.name}"
    async for page in client.pages(kinds.POD, key.namespace, lean_pod, label_selector=label):
        found += page.items
        for name in page.refused:
            LOGGER.warning("%s: pod %s is ignored, since it exceeds what the operator reads", key, name)
    return tuple(found)


async def _children(client: Kube, key: ClusterKey) -> dict[tuple[str, str], Manifest]:
    wanted = [*child_names(key.name), (kinds.SERVICE, names.head_service_name(key.name))]
    found = await asyncio.gather(*(_child(client, kind, key.namespace, name) for kind, name in wanted))
    return {(kind.kind, name): body for (kind, name), body in zip(wanted, found, strict=True) if body is not None}


async def _child(client: Kube, kind: Kind, namespace: str, name: str) -> Manifest | None:
    try:
        limits = OBJECT_LIMITS if kind is kinds.RAY_CLUSTER else CHILD_LIMITS
        return await client.get(kind, namespace, name, limits=limits)
    except RefusedObject as error:
        raise OversizedChild(
            f"{kind.kind} {name}, which the operator made, was changed and exceeds what the operator reads, so nobody "
            f"knows what is true ({error}): restore it, or delete it, and the operator recreates it"
        ) from None


def _plan(config_map: Manifest | None) -> ClusterPlan | None:
    """Return the present plan; None if there is none, or if it cannot be read."""
    try:
        text = str((config_map or {})["data"][names.PLAN_KEY])
        return ClusterPlan.model_validate(parse(text.encode(), OBJECT_LIMITS))
    except (KeyError, TypeError, ValueError):
        return None
