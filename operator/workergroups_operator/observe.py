"""Step one: read the state of one RayCluster's world from the API server."""

import asyncio
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from pydantic import ValidationError

from workergroups_api import manifest as kinds
from workergroups_api import names
from workergroups_api.conditions import Explanation
from workergroups_api.kube import Kube
from workergroups_api.manifest import Kind, Manifest
from workergroups_api.model import ApiObject
from workergroups_api.plan import ClusterPlan
from workergroups_api.resource_pool import ResourcePool
from workergroups_api.worker_group import WorkerGroup
from workergroups_operator.failures import internal_error
from workergroups_operator.heartbeats import Heartbeats
from workergroups_operator.membership import ClusterKey, Membership, cluster_of_pool, pools_of_group
from workergroups_operator.observed import AGENT, HEAD, WORKER, Observed, Unreadable, is_running, node_group_of
from workergroups_operator.policy.generated_names import without_generated_names

Object = TypeVar("Object", bound=ApiObject)


def child_names(cluster: str) -> dict[Kind, str]:
    """Everything that the operator makes for a cluster."""
    agent = names.agent_name(cluster)
    return {
        kinds.SECRET: names.token_secret_name(cluster),
        kinds.SERVICE_ACCOUNT: agent,
        kinds.ROLE: agent,
        kinds.ROLE_BINDING: agent,
        kinds.LEASE: agent,
        kinds.CONFIG_MAP: names.plan_name(cluster),
        kinds.RAY_CLUSTER: cluster,
        kinds.DEPLOYMENT: agent,
    }


async def observe(client: Kube, membership: Membership, heartbeats: Heartbeats, key: ClusterKey) -> Observed:
    """Read a cluster's pools, groups, children and pods, and what its agent shows."""
    # The agent's Lease first: what it vouches for was written into the objects' status before.
    children = await _children(client, key)
    members, pods = await asyncio.gather(
        observe_members(client, membership, key),
        client.list(kinds.POD, key.namespace, label_selector=f"{names.CLUSTER_LABEL}={key.name}"),
    )
    seen = replace(
        members,
        children=children,
        pods=tuple(pods),
        plan=_plan(children.get((kinds.CONFIG_MAP.kind, names.plan_name(key.name)))),
    )
    return await _with_signs(client, heartbeats, seen)


async def observe_members(client: Kube, membership: Membership, key: ClusterKey) -> Observed:
    """Read a cluster's pools and groups only."""
    pool_bodies, group_bodies = await asyncio.gather(
        _read(client, kinds.RESOURCE_POOL, key.namespace, membership.pools_of(key)),
        _read(client, kinds.WORKER_GROUP, key.namespace, membership.groups_of(key)),
    )
    here = [body for body in pool_bodies if cluster_of_pool(_name(body), _spec(body)) == key.name]
    moved = {_name(body) for body in pool_bodies} - {_name(body) for body in here}
    group_bodies = [body for body in group_bodies if pools_of_group(_name(body), _spec(body))[0] not in moved]
    pools, odd_pools = _parsed(kinds.RESOURCE_POOL, ResourcePool, here)
    groups, odd_groups = _parsed(kinds.WORKER_GROUP, WorkerGroup, group_bodies)
    return Observed(
        key=key,
        pools=pools,
        groups=groups,
        unreadable=(*odd_pools, *odd_groups),
        pools_elsewhere=await _elsewhere(client, key, group_bodies, {_name(body) for body in here}),
    )


async def _with_signs(client: Kube, heartbeats: Heartbeats, seen: Observed) -> Observed:
    """What the agent shows, and KubeRay's complaint if pods are missing."""
    lease = seen.child(kinds.LEASE, names.agent_name(seen.key.name))
    heartbeats.note(seen.key, lease)
    has_agent = any(map(is_running, seen.pods_of(AGENT)))
    sign = heartbeats.sign(seen.key, seen.head, has_pod=has_agent, is_empty=not seen.pods)
    complaint = await _complaint(client, seen) if _lacks_pods(seen) else None
    return replace(seen, agent=sign, complaint=complaint)


def _lacks_pods(seen: Observed) -> bool:
    if seen.ray_cluster is None:
        return False
    wanted = {node_group_of(pool): pool.spec.nodes for pool in seen.pools}
    return not seen.pods_of(HEAD) or any(len(seen.pods_of(WORKER, name)) < n for name, n in wanted.items())


async def _complaint(client: Kube, seen: Observed) -> str | None:
    """The latest warning that KubeRay gave about the cluster."""
    uid = (seen.ray_cluster or {})["metadata"]["uid"]
    selector = f"involvedObject.uid={uid},type=Warning"
    events = await client.list(kinds.CORE_EVENT, seen.key.namespace, field_selector=selector)
    latest = max(events, key=lambda event: str(event.get("lastTimestamp") or event.get("eventTime")), default=None)
    return without_generated_names(str(latest.get("message"))) if latest else None


async def _elsewhere(
    client: Kube, key: ClusterKey, groups: Collection[Manifest], here: Collection[str]
) -> dict[str, str]:
    """Pool -> cluster, of the pools that groups name and that are there, but not on this cluster."""
    named = {pool for body in groups for pool in pools_of_group(_name(body), _spec(body))} - set(here)
    bodies = await _read(client, kinds.RESOURCE_POOL, key.namespace, sorted(named))
    clusters = {_name(body): cluster_of_pool(_name(body), _spec(body)) for body in bodies}
    return {pool: cluster for pool, cluster in clusters.items() if cluster != key.name}


async def _read(client: Kube, kind: Kind, namespace: str, members: Sequence[str]) -> list[Manifest]:
    """The objects of these names that are not being deleted, in the order of their creation."""
    found = await asyncio.gather(*(client.get(kind, namespace, name) for name in members))
    alive = [body for body in found if body is not None and "deletionTimestamp" not in body["metadata"]]
    return sorted(alive, key=lambda body: (body["metadata"]["creationTimestamp"], _name(body)))


def _parsed(
    kind: Kind, model: type[Object], bodies: Collection[Manifest]
) -> tuple[tuple[Object, ...], tuple[Unreadable, ...]]:
    good, odd = [], []
    for body in bodies:
        try:
            good.append(_read_by(model, body))
        except Exception as error:  # Pydantic has more than its own: a RecursionError, for one.
            odd.append(Unreadable(kind, body, _why_unreadable(error)))
    return tuple(good), tuple(odd)


def _read_by(model: type[Object], body: Manifest) -> Object:
    """The object; a status that cannot be read, such as one of an older version, is made anew."""
    try:
        return model.model_validate(body)
    except ValidationError:
        return model.model_validate({key: value for key, value in body.items() if key != "status"})


def _why_unreadable(error: Exception) -> Explanation:
    if not isinstance(error, ValidationError):
        return internal_error(error, "correct the object, or delete it and create it again")
    first = error.errors(include_url=False, include_input=False)[0]
    field = ".".join(str(part) for part in first["loc"])
    return Explanation("InvalidSpec", f"{field}: {first['msg']}: correct it, or delete the object and create it again")


async def _children(client: Kube, key: ClusterKey) -> dict[tuple[str, str], dict[str, Any]]:
    wanted = {**child_names(key.name), kinds.SERVICE: names.head_service_name(key.name)}
    found = await asyncio.gather(*(client.get(kind, key.namespace, name) for kind, name in wanted.items()))
    return {
        (kind.kind, name): body for (kind, name), body in zip(wanted.items(), found, strict=True) if body is not None
    }


def _plan(config_map: Manifest | None) -> ClusterPlan | None:
    """The plan as it is now; None if there is none, or somebody has spoilt it."""
    try:
        return ClusterPlan.model_validate(json.loads((config_map or {})["data"][names.PLAN_KEY]))
    except (KeyError, TypeError, ValueError):
        return None


def _name(body: Manifest) -> str:
    return str(body["metadata"]["name"])


def _spec(body: Mapping[str, Any]) -> Mapping[str, Any]:
    spec = body.get("spec")
    return spec if isinstance(spec, Mapping) else {}
