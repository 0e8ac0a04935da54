"""Read a cluster's pools and groups, each on its own, so that the content of one never harms another.

What the operator keeps of an object does not grow with what its user wrote: of a group's arguments and environment it
keeps a digest, and of an object that exceeds a limit the identity and the conditions.
"""

import asyncio
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

from pydantic import ValidationError

from workergroups_api import launch
from workergroups_api.conditions import Explanation
from workergroups_api.group_settings import EnvVar
from workergroups_api.manifest import RESOURCE_POOL, WORKER_GROUP, Kind, Manifest, name_of
from workergroups_api.model import ApiObject
from workergroups_api.pod_settings import EnvFrom
from workergroups_api.references import cluster_of_pool, pools_of_group
from workergroups_api.report import GroupReport
from workergroups_api.resource_pool import ResourcePool
from workergroups_api.vocabulary import Reason
from workergroups_api.worker_group import WorkerGroup
from workergroups_kube import API_ERRORS, Kube, RefusedObject
from workergroups_operator.failures import internal_error
from workergroups_operator.group_sources import Sources
from workergroups_operator.lean import identity, lean_member, lean_status
from workergroups_operator.membership import ClusterKey, Membership
from workergroups_operator.observed import GroupEnv, Observed, UnreadableObject, unreadable
from workergroups_operator.policy.spec_limits import excess, unfit_group_env, unfit_metadata, unfit_pool_env
from workergroups_operator.skeletons import CONDITIONED, UnexpectedAnswer, skeleton_of

LOGGER = logging.getLogger(__name__)
Object = TypeVar("Object", bound=ApiObject)

# Objects of a kind that a reconcile reads at once: the variables of these groups are in memory at the same time.
_AT_ONCE = 8
_WAY_OUT = "correct the object, or delete it and create it again"


@dataclass(frozen=True)
class Member:
    """A pool or a group that is not being deleted."""

    kind: Kind
    metadata: Manifest
    subject: ResourcePool | WorkerGroup | UnreadableObject
    # Only of a pool.
    cluster: str = ""
    # Only of a group: the pools that it names, and the digest of what its ranks are made from.
    pools: tuple[str, ...] = ()
    launch_revision: str | None = None
    # Only of a group with a method to run: the digest of the part of that which its spec has.
    run_revision: str = ""
    # Only of a group that takes variables from Secrets and ConfigMaps, until these are read: its variables.
    takes: tuple[Sequence[EnvVar], Sequence[EnvFrom]] | None = field(default=None, repr=False)
    # Only of a group: the variables that it takes from Secrets and ConfigMaps, or why it cannot; None if it takes none.
    environment: GroupEnv | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """The object's name."""
        return str(self.metadata["name"])


async def observe_members(client: Kube, membership: Membership, key: ClusterKey) -> Observed:
    """Read a cluster's pools and groups only."""
    sources = Sources(client, key.namespace)
    pools, groups = await asyncio.gather(
        _members(client, RESOURCE_POOL, key.namespace, membership.pools_of(key)),
        _members(client, WORKER_GROUP, key.namespace, membership.groups_of(key), sources),
    )
    here, groups = _of_cluster(key, pools, groups)
    named = {pool for group in groups for pool in group.pools} - {pool.name for pool in here}
    elsewhere = await _members(client, RESOURCE_POOL, key.namespace, named)
    return replace(
        _observed(key, here, groups),
        launch_revisions={group.name: group.launch_revision for group in groups},
        run_revisions={group.name: group.run_revision for group in groups},
        environments={group.name: group.environment for group in groups if group.environment is not None},
        pools_elsewhere={pool.name: pool.cluster for pool in elsewhere if pool.cluster != key.name},
    )


async def observe_readable_members(client: Kube, membership: Membership, key: ClusterKey) -> tuple[Observed, bool]:
    """Read those of a cluster's pools and groups that can be read, without what they name. Return whether all can.

    Raises the first error if none can be read.
    """
    named = [(RESOURCE_POOL, name) for name in membership.pools_of(key)]
    named += [(WORKER_GROUP, name) for name in membership.groups_of(key)]
    reads = (_read(client, kind, key.namespace, name) for kind, name in named)
    found = await asyncio.gather(*reads, return_exceptions=True)
    errors = [each for each in found if isinstance(each, BaseException)]
    if errors and len(errors) == len(found):
        raise errors[0]
    members = [each for each in found if isinstance(each, Member)]
    pools, groups = ([each for each in members if each.kind is kind] for kind in (RESOURCE_POOL, WORKER_GROUP))
    return _observed(key, *_of_cluster(key, _alive(pools), _alive(groups))), not errors


def _of_cluster(key: ClusterKey, pools: list[Member], groups: list[Member]) -> tuple[list[Member], list[Member]]:
    """Return the pools and groups that are still the cluster's."""
    here = [pool for pool in pools if pool.cluster == key.name]
    moved = {pool.name for pool in pools if pool.cluster != key.name}
    return here, [group for group in groups if group.pools[0] not in moved]


def _observed(key: ClusterKey, pools: list[Member], groups: list[Member]) -> Observed:
    subjects = [member.subject for member in (*pools, *groups)]
    return Observed(
        key=key,
        at=datetime.now(UTC),
        pools=tuple(each for each in subjects if isinstance(each, ResourcePool)),
        groups=tuple(each for each in subjects if isinstance(each, WorkerGroup)),
        unreadable=tuple(each for each in subjects if isinstance(each, UnreadableObject)),
    )


async def named_pools(client: Kube, namespace: str) -> frozenset[str]:
    """List the pools that the groups of a namespace name, also groups that are being deleted."""
    named: set[str] = set()
    async for page in client.pages(WORKER_GROUP, namespace, _pools_named_in):
        named.update(name for pools in page.items for name in pools)
        found = await asyncio.gather(*(_read(client, WORKER_GROUP, namespace, name) for name in page.refused))
        named.update(name for member in found if member is not None for name in member.pools)
    return frozenset(named)


def _pools_named_in(group: Manifest) -> tuple[str, ...]:
    return pools_of_group(name_of(group), _spec(group))


async def _members(
    client: Kube, kind: Kind, namespace: str, members: Collection[str], sources: Sources | None = None
) -> list[Member]:
    """Return the members that are not being deleted, in the order of their creation."""
    slots = asyncio.Semaphore(_AT_ONCE)

    async def read(name: str) -> Member | None:
        async with slots:
            return await _read(client, kind, namespace, name, sources)

    return _alive(await asyncio.gather(*map(read, members)))


def _alive(found: Iterable[Member | None]) -> list[Member]:
    alive = [member for member in found if member is not None and "deletionTimestamp" not in member.metadata]
    return sorted(alive, key=lambda member: (str(member.metadata.get("creationTimestamp")), member.name))


async def _read(client: Kube, kind: Kind, namespace: str, name: str, sources: Sources | None = None) -> Member | None:
    """Return the object; without `sources`, without the variables that a group takes from other objects."""
    member = await client.get_made(kind, namespace, name, partial(_made, kind))
    return member if member is None or sources is None else await _with_environment(sources, member)


async def _made(kind: Kind, found: Manifest | RefusedObject) -> Member | None:
    if isinstance(found, RefusedObject):
        return await _beyond_limits(kind, found)
    why = excess(kind, _spec(found))
    return _unreadable(kind, found, why) if why else _parsed(kind, found)


async def _with_environment(sources: Sources, member: Member) -> Member:
    if member.takes is None or isinstance(member.subject, UnreadableObject):
        return member
    try:
        return replace(member, environment=await sources.env_of(*member.takes), takes=None)
    except API_ERRORS:
        raise
    except Exception as error:
        odd = unreadable(WORKER_GROUP, member.subject, internal_error(error, _WAY_OUT))
        return replace(member, subject=odd, takes=None)


async def _beyond_limits(kind: Kind, error: RefusedObject) -> Member | None:
    """Return what can be read of an object that exceeds the limits."""
    why = Explanation(Reason.INVALID_SPEC, f"the object exceeds what the operator reads: {error}: {_WAY_OUT}")
    try:
        body = await skeleton_of(error.data, CONDITIONED)
        return _unreadable(kind, body, why)
    except (UnexpectedAnswer, KeyError, TypeError):
        LOGGER.error("a %s is ignored, since its name cannot be read: %s", kind.kind, error)
        return None


def _parsed(kind: Kind, body: Manifest) -> Member:
    body = body | {"metadata": lean_member(kind, body["metadata"])}
    try:
        if kind is RESOURCE_POOL:
            pool = _read_by(ResourcePool, body)
            why = unfit_metadata(pool.metadata) or unfit_pool_env(pool)
            member = Member(kind, pool.metadata, pool, cluster=pool.cluster)
            return _unreadable(kind, body, why) if why else member
        group = _read_by(WorkerGroup, body)
        why = unfit_group_env(group.launch.env)
        return _unreadable(kind, body, why) if why else _group(group)
    except ValidationError as error:
        return _unreadable(kind, body, _why_invalid(error))
    except Exception as error:  # Pydantic and json raise others, such as RecursionError.
        return _unreadable(kind, body, internal_error(error, _WAY_OUT))


def _group(group: WorkerGroup) -> Member:
    """Return the group with a digest of what its ranks are made from, and without that itself."""
    made_from = group.launch
    launch_revision = launch.revision(made_from, (group.status.ranks or GroupReport()).code)
    run = group.spec.run.model_copy(update={"kwargs_": {}}) if group.spec.run else None
    metadata = identity(group.metadata)
    nothing = {"worker": None, "roles": (), "env": (), "env_from": (), "run": run}
    lean = group.model_copy(update={"metadata": metadata, "spec": group.spec.model_copy(update=nothing)})
    pools, run_revision = tuple(ref.name for ref in group.pools), launch.digest(made_from.to_json()) if run else ""
    takes = (group.spec.env, group.spec.env_from) if group.spec.env_sources else None
    return Member(
        WORKER_GROUP,
        metadata,
        lean,
        pools=pools,
        launch_revision=launch_revision,
        run_revision=run_revision,
        takes=takes,
    )


def _unreadable(kind: Kind, body: Manifest, why: Explanation) -> Member:
    metadata = identity(body["metadata"])
    name, spec = str(metadata["name"]), _spec(body)
    subject = UnreadableObject(kind, {"metadata": metadata, "status": lean_status(body.get("status"))}, why)
    return Member(kind, metadata, subject, cluster_of_pool(name, spec), pools_of_group(name, spec))


def _read_by(model: type[Object], body: Manifest) -> Object:
    """Return the object; a status that cannot be read, such as one of an older version, counts as empty."""
    try:
        return model.model_validate(body)
    except ValidationError:
        return model.model_validate({key: value for key, value in body.items() if key != "status"})


def _why_invalid(error: ValidationError) -> Explanation:
    first = error.errors(include_url=False, include_input=False)[0]
    field = ".".join(str(part) for part in first["loc"])
    return Explanation(Reason.INVALID_SPEC, f"{field}: {first['msg']}: {_WAY_OUT}")


def _spec(body: Mapping[str, Any]) -> Mapping[str, Any]:
    spec = body.get("spec")
    return spec if isinstance(spec, Mapping) else {}
