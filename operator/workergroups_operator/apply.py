"""Step five, the only writer of children: bring what exists to what is desired, by server-side apply.

One object that cannot be written never keeps the others from being written.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from kubernetes.aio.dynamic.exceptions import NotFoundError

from workergroups_api.conditions import Explanation
from workergroups_api.kube import API_ERRORS, Kube, api_error_message
from workergroups_api.manifest import DEPLOYMENT, RAY_CLUSTER, ROLE_BINDING, Manifest, identity
from workergroups_api.names import MANIFEST_ANNOTATION, OPERATOR_FIELD_MANAGER
from workergroups_operator.decisions import Decisions
from workergroups_operator.failures import Failures
from workergroups_operator.observed import Observed

# Pods need what the other objects hold, and a RoleBinding is refused without its Role.
_NEED_OTHERS = {RAY_CLUSTER.kind, DEPLOYMENT.kind, ROLE_BINDING.kind}


async def apply(client: Kube, observed: Observed, decisions: Decisions, wanted: Sequence[Manifest]) -> Failures:
    """Delete a cluster that has to start anew, and write what differs from what was applied before."""
    failed: dict[str, Explanation] = {}
    if decisions.restarts.is_due and not decisions.obstacle and observed.ray_cluster:
        try:
            await client.delete(observed.ray_cluster)
        except API_ERRORS as error:
            failed[RAY_CLUSTER.kind] = _explanation(observed.ray_cluster, error)
    # Objects of a batch do not wait for each other, since admission may be slow.
    for is_last in (False, True):
        batch = [manifest for manifest in wanted if (manifest["kind"] in _NEED_OTHERS) is is_last]
        reasons = await asyncio.gather(*(_bring(client, observed, manifest) for manifest in batch))
        failed |= {each["kind"]: why for each, why in zip(batch, reasons, strict=True) if why is not None}
    return Failures(failed)


async def _bring(client: Kube, observed: Observed, manifest: Manifest) -> Explanation | None:
    """Write the object if it differs. Returns why it could not be written."""
    try:
        live = observed.children.get(identity(manifest))
        if live is None or not is_applied(live, manifest):
            await client.apply(manifest)
    except Exception as error:  # Not only of the API server: the live object may be anything.
        return _explanation(manifest, error)
    return None


def is_applied(live: Manifest, wanted: Manifest) -> bool:
    """Whether the object is as it was applied, and was applied as it is wanted now.

    The digest tells what was applied last, removed fields included; values and owners tell whether somebody else has
    changed that since. What others added for themselves does not matter.
    """
    digest = wanted["metadata"]["annotations"][MANIFEST_ANNOTATION]
    applied = live["metadata"].get("annotations", {}).get(MANIFEST_ANNOTATION)
    return applied == digest and covers(live, wanted) and _is_owner(live, wanted)


def covers(live: Any, wanted: Any) -> bool:
    """Whether every field of `wanted` is in `live` already."""
    if isinstance(wanted, Mapping):
        if not wanted:
            return live is None or isinstance(live, Mapping)
        return isinstance(live, Mapping) and all(covers(live.get(key), value) for key, value in wanted.items())
    if isinstance(wanted, list):
        if not wanted:
            return not live
        return (
            isinstance(live, list)
            and len(live) == len(wanted)
            and all(covers(have, want) for have, want in zip(live, wanted, strict=True))
        )
    return bool(live == wanted)


def _is_owner(live: Manifest, wanted: Manifest) -> bool:
    """Whether we still own the parts that we applied: a list that is owned as a whole may have got additions."""
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
        return Explanation("KubeRayMissing", "there is no RayCluster kind in this Kubernetes: install KubeRay")
    kind, name = identity(manifest)
    return Explanation(
        "ApplyFailed", f"{kind} {name} cannot be written, and is tried again: {api_error_message(error)}"
    )
