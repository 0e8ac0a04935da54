"""Step six, the only writer of children: change what exists to what is desired, by server-side apply.

It also deletes idle pools.

If the API server refuses one object, the operator still writes the others.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from kubernetes.aio.dynamic.exceptions import ConflictError, NotFoundError

from workergroups_api.conditions import Explanation
from workergroups_api.launch import digest
from workergroups_api.manifest import (
    DEPLOYMENT,
    NETWORK_POLICY,
    POD,
    RAY_CLUSTER,
    RESOURCE_POOL,
    ROLE_BINDING,
    SECRET,
    Manifest,
    annotations_of,
    identity,
)
from workergroups_api.names import MANIFEST_ANNOTATION, OPERATOR_FIELD_MANAGER, network_policy_name, token_secret_name
from workergroups_api.resource_pool import ResourcePool
from workergroups_api.vocabulary import Component, Reason
from workergroups_common.quantities import value_of
from workergroups_kube import API_ERRORS, Kube, api_error_message
from workergroups_operator.decisions import Decisions
from workergroups_operator.events import create_event, object_event
from workergroups_operator.failures import Failures
from workergroups_operator.membership import ClusterKey
from workergroups_operator.observed import Observed
from workergroups_operator.policy.queueing import is_in_old_queue
from workergroups_operator.timings import Timings
from workergroups_operator.writes import Writes

# How many clusters of a namespace the operator writes at once.
NAMESPACE_WRITES = 2
# Pods need the other objects, and the API server refuses a RoleBinding without its Role.
_NEED_OTHERS = {RAY_CLUSTER.kind, DEPLOYMENT.kind, ROLE_BINDING.kind}
# By these, the API server refuses a change of an object that is another one by now, or has changed.
_GUARDS = {"uid", "resourceVersion"}
# The fields of a container's resources.
_RESOURCES = {"requests", "limits"}
# These are made for one token.
_NEED_TOKEN = {SECRET.kind, RAY_CLUSTER.kind, DEPLOYMENT.kind}


@dataclass(frozen=True)
class Changes:
    """What must be written for a cluster; nothing if all is as desired."""

    delete: Manifest | None
    # The Secret with a fresh token. It must not replace another token, which the last write of an operator that was
    # killed may have created since this one looked: pods may have started with that.
    create: Manifest | None
    write: tuple[Manifest, ...]
    # Why live objects cannot even be compared, by kind.
    failed: Mapping[str, Explanation]
    # Equal while the users' specs and the objects that differ from them stay the same.
    digest: str
    # Idle pools, and why they are deleted.
    unused: tuple[tuple[ResourcePool, Explanation], ...] = ()
    # Pods that check images, and do not exist yet.
    checks: tuple[Manifest, ...] = ()
    # Whether Ray's pods would begin without a NetworkPolicy if that could not be written.
    is_open: bool = False

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of what must be written."""
        return frozenset(manifest["kind"] for manifest in (*self.write, *self.checks))


class Applier:
    """Changes what exists to what is desired, with one batch of writes at a time for each cluster."""

    def __init__(self, client: Kube, enqueue: Callable[[ClusterKey], None], timings: Timings) -> None:
        self._client = client
        self.writes: Writes[Failures] = Writes(enqueue, timings, at_once=NAMESPACE_WRITES)
        # For clusters whose last writes failed: what failed, and until a reconcile reports that, the digest of the
        # changes.
        self._failed: dict[ClusterKey, Failures] = {}
        self._unreported: dict[ClusterKey, str] = {}

    async def apply(
        self, observed: Observed, decisions: Decisions, wanted: Sequence[Manifest], checks: Sequence[Manifest] = ()
    ) -> Failures:
        """Delete a cluster that must restart or is off, and unused pools; write what differs from what was applied.

        Return what failed; while writes are under way, what failed at the last try. `checks` are the pods that check
        images; others of their kind are deleted.
        """
        key, due = observed.key, changes(observed, decisions, wanted, checks)
        if self._unreported.pop(key, None) == due.digest:
            return self._failed[key]  # The next try follows with back-off.
        if not due.delete and not due.write and not due.checks and not due.unused:
            self.forget(key)
            return Failures(due.failed)
        ended = await self.writes.run(key, {key: partial(self._write, key, due)})
        if key not in ended:
            return replace(self._failed.get(key, Failures(due.failed)), unwritten=due.kinds)
        self._unreported.pop(key, None)
        return ended[key]

    def forget(self, key: ClusterKey) -> None:
        """Forget what failed."""
        self._failed.pop(key, None)
        self._unreported.pop(key, None)

    async def _write(self, key: ClusterKey, due: Changes) -> Failures:
        failures = await write(self._client, due)
        self.forget(key)
        if failures.by_kind:
            self._failed[key], self._unreported[key] = failures, due.digest
        return failures


def changes(
    observed: Observed, decisions: Decisions, wanted: Sequence[Manifest], checks: Sequence[Manifest] = ()
) -> Changes:
    """Return what differs from what is desired. Pure."""
    delete = _unwanted(observed, decisions) or _old_head(observed, decisions) or _old_check(observed, checks)
    differing, failed = [], {}
    for manifest in wanted:
        try:
            live = observed.children.get(identity(manifest))
            if live is None or not is_applied(live, manifest):
                differing.append(manifest)
        except Exception as error:  # The live object may be anything.
            failed[manifest["kind"]] = _explanation(manifest, error)
    unused = tuple((pool, why) for pool in observed.pools if (why := decisions.deleted_pools.get(pool.name)))
    present = {pod["metadata"]["name"] for pod in observed.pods_of(Component.IMAGE_CHECK)}
    missing = tuple(pod for pod in checks if pod["metadata"]["name"] not in present and not decisions.obstacle)
    asked = [(each.uid, each.generation) for each in (*observed.pools, *observed.groups)]
    deleted = [delete and delete["metadata"]["uid"], *(pool.uid for pool, _ in unused)]
    same = digest([asked, deleted, [identity(each) for each in (*differing, *missing)]])
    policy = (NETWORK_POLICY.kind, network_policy_name(observed.key.name))
    is_open = observed.ray_cluster is None and policy not in observed.children
    fresh = _fresh_token(observed, differing)
    return Changes(delete, fresh, tuple(differing), failed, same, unused, missing, is_open)


def _fresh_token(observed: Observed, differing: Sequence[Manifest]) -> Manifest | None:
    secret = (SECRET.kind, token_secret_name(observed.key.name))
    if secret in observed.children:
        return None
    return next((each for each in differing if identity(each) == secret), None)


def _unwanted(observed: Observed, decisions: Decisions) -> Manifest | None:
    """Return the RayCluster if it must be deleted, and is not being deleted yet."""
    cluster = observed.ray_cluster
    if cluster is None or decisions.obstacle:
        return None
    is_old = decisions.is_off or is_in_old_queue(observed)
    is_going = "deletionTimestamp" in cluster["metadata"]
    return cluster if (is_old and not is_going) or decisions.restart.is_due else None


def _old_head(observed: Observed, decisions: Decisions) -> Manifest | None:
    """Return the head's pod that must be deleted; none while the operator writes nothing, or the cluster goes."""
    stays = decisions.obstacle or decisions.restart.why or decisions.is_off or decisions.is_held
    return None if decisions.old_head is None or stays else _pod(observed, decisions.old_head)


def _old_check(observed: Observed, checks: Sequence[Manifest]) -> Manifest | None:
    """Return a pod that has checked images, or need not any more."""
    needed = {pod["metadata"]["name"] for pod in checks}
    pods = observed.pods_of(Component.IMAGE_CHECK)
    return next((_pod(observed, pod) for pod in pods if pod["metadata"]["name"] not in needed), None)


def _pod(observed: Observed, pod: Manifest) -> Manifest:
    """Return which pod it is, to delete it."""
    metadata = pod["metadata"]
    return POD.manifest({"name": metadata["name"], "uid": metadata["uid"], "namespace": observed.key.namespace})


async def write(client: Kube, due: Changes) -> Failures:
    """Make the changes."""
    failed, written = dict(due.failed), set[str]()
    if due.delete is not None:
        try:
            await client.delete(due.delete)
        except API_ERRORS as error:
            failed[due.delete["kind"]] = _explanation(due.delete, error)
    for pod in due.checks:
        await _is_created(client, pod, failed)
    pending = due.write
    if due.create is not None and not await _is_created(client, due.create, failed):
        pending = tuple(manifest for manifest in due.write if manifest["kind"] not in _NEED_TOKEN)
    # Objects of a batch do not wait for each other, since admission may be slow.
    for is_last in (False, True):
        batch = [manifest for manifest in pending if (manifest["kind"] in _NEED_OTHERS) is is_last]
        if is_last and due.is_open and NETWORK_POLICY.kind in failed:
            batch = [manifest for manifest in batch if manifest["kind"] != RAY_CLUSTER.kind]
        are_written = await asyncio.gather(*(_is_written(client, manifest, failed) for manifest in batch))
        written |= {each["kind"] for each, is_written in zip(batch, are_written, strict=True) if is_written}
    for refused in await asyncio.gather(*(_delete_pool(client, pool, why) for pool, why in due.unused)):
        failed |= {RESOURCE_POOL.kind: refused} if refused is not None else {}
    return Failures(failed, due.kinds - written)


async def _is_created(client: Kube, manifest: Manifest, failed: dict[str, Explanation]) -> bool:
    """Create the object. If there is one already, that change starts another reconcile, which decides again."""
    try:
        await client.create(manifest)
    except ConflictError:
        return False
    except API_ERRORS as error:
        failed[manifest["kind"]] = _explanation(manifest, error)
        return False
    return True


async def _delete_pool(client: Kube, pool: ResourcePool, why: Explanation) -> Explanation | None:
    """Delete a pool, unless it has changed since. Return why that failed."""
    try:
        await client.delete(RESOURCE_POOL.manifest(pool.metadata), only_unchanged=True)
    except ConflictError:
        return None  # That change, such as one that wakes it, starts another reconcile, which decides again.
    except API_ERRORS as error:
        return Explanation(
            Reason.APPLY_FAILED,
            f"ResourcePool {pool.name} cannot be deleted, and is tried again: {api_error_message(error)}",
        )
    await create_event(client, object_event(RESOURCE_POOL, pool.metadata, "Normal", why, datetime.now(UTC)))
    return None


async def _is_written(client: Kube, manifest: Manifest, failed: dict[str, Explanation]) -> bool:
    """Write the object. If it has changed or gone since it was read, that starts another reconcile."""
    try:
        await client.apply(manifest)
    except Exception as error:  # Not only API errors: an object may hold what cannot be sent.
        is_guarded = not _GUARDS.isdisjoint(manifest["metadata"])
        is_outrun = isinstance(error, ConflictError) and is_guarded
        if not is_outrun:
            failed[manifest["kind"]] = _explanation(manifest, error)
        return False
    return True


def is_applied(live: Manifest, wanted: Manifest) -> bool:
    """Return whether the object is as it was applied last, and that is what is wanted now.

    A server-side apply that changes nothing would have the same effect, but it would cost the API server and its
    webhooks a request for each object and reconcile. The digest tells what was applied last, removed fields included,
    except for owners, which the operator never removes.
    Values and owners show whether that was changed since. Fields that others added do not matter.
    """
    digest = wanted["metadata"]["annotations"][MANIFEST_ANNOTATION]
    applied = annotations_of(live).get(MANIFEST_ANNOTATION)
    return applied == digest and covers(live, wanted) and _is_owner(live, wanted)


def covers(live: Any, wanted: Any) -> bool:
    """Return whether every field of `wanted` is in `live` already."""
    if isinstance(wanted, Mapping):
        if not wanted:
            return live is None or isinstance(live, Mapping)
        alike = _are_quantities_equal if wanted.keys() <= _RESOURCES else covers
        return isinstance(live, Mapping) and all(alike(live.get(key), value) for key, value in wanted.items())
    if isinstance(wanted, list):
        if not wanted:
            return not live
        return (
            isinstance(live, list)
            and len(live) == len(wanted)
            and all(covers(have, want) for have, want in zip(live, wanted, strict=True))
        )
    return bool(live == wanted)


def _are_quantities_equal(live: Any, wanted: Any) -> bool:
    """Return whether all quantities have the same value: the API server writes 0.5 as 500m."""
    if not isinstance(live, Mapping) or not isinstance(wanted, Mapping):
        return covers(live, wanted)
    pairs = [(live.get(name), quantity) for name, quantity in wanted.items()]
    return all(have == want or _value(have) == _value(want) for have, want in pairs)


def _value(quantity: Any) -> Any:
    value = value_of(str(quantity))
    return quantity if value is None else value


def _is_owner(live: Manifest, wanted: Manifest) -> bool:
    """Return whether the operator still owns the fields that it applied: a list may have got more entries."""
    owned: dict[str, Any] = {}
    for entry in live["metadata"].get("managedFields", ()):
        if entry["manager"] == OPERATOR_FIELD_MANAGER and entry["operation"] == "Apply" and "subresource" not in entry:
            owned = entry["fieldsV1"]
    for key, value in wanted.items():
        if key in ("apiVersion", "kind", "metadata"):
            continue
        part = owned.get(f"f:{key}")
        if part is None or (isinstance(value, Mapping) and part and not all(f"f:{name}" in part for name in value)):
            return False
    return True


def _explanation(manifest: Manifest, error: Exception) -> Explanation:
    if isinstance(error, NotFoundError) and manifest["kind"] == RAY_CLUSTER.kind:
        return Explanation(Reason.KUBERAY_MISSING, "there is no RayCluster kind in this Kubernetes: install KubeRay")
    kind, name = identity(manifest)
    return Explanation(
        Reason.APPLY_FAILED, f"{kind} {name} cannot be written, and is tried again: {api_error_message(error)}"
    )
