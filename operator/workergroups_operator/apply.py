"""Step three, the only writer of children: bring what exists to what is desired, by server-side apply."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kubernetes.aio.dynamic.exceptions import DynamicApiError, NotFoundError

from workergroups_api.kube import RAY_CLUSTER, Kube, Manifest, api_error_message
from workergroups_api.names import CLUSTER_LABEL
from workergroups_operator.observe import Observed


@dataclass(frozen=True)
class ApplyFailure:
    """Why what is desired cannot be made, and the way out."""

    reason: str
    message: str


async def apply(client: Kube, observed: Observed, wanted: Sequence[Manifest]) -> ApplyFailure | None:
    """Write what differs; nothing at all if an object of the same name belongs to somebody else."""
    stranger = name_taken(observed, wanted)
    if stranger:
        return stranger
    for manifest in wanted:
        live = observed.children.get(_identity(manifest))
        if live is not None and covers(live, manifest):
            continue
        try:
            await client.apply(manifest)
        except DynamicApiError as error:
            return _failure(manifest, error)
    return None


def name_taken(observed: Observed, wanted: Sequence[Manifest]) -> ApplyFailure | None:
    """An object that has the name of one of ours, but was not made by the operator for this cluster."""
    for manifest in wanted:
        live = observed.children.get(_identity(manifest))
        if live is not None and live["metadata"].get("labels", {}).get(CLUSTER_LABEL) != observed.key.name:
            kind, name = _identity(manifest)
            return ApplyFailure(
                "NameTaken",
                f"{kind} {name} exists and is not WorkerGroups': delete it, or give the pool another spec.cluster",
            )
    return None


def covers(live: Any, wanted: Any) -> bool:
    """Whether every field of `wanted` is in `live` already; what others added does not matter."""
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


def _identity(manifest: Manifest) -> tuple[str, str]:
    return str(manifest["kind"]), str(manifest["metadata"]["name"])


def _failure(manifest: Manifest, error: DynamicApiError) -> ApplyFailure:
    if isinstance(error, NotFoundError) and manifest["kind"] == RAY_CLUSTER.kind:
        return ApplyFailure("KubeRayMissing", "there is no RayCluster kind in this Kubernetes: install KubeRay")
    kind, name = _identity(manifest)
    return ApplyFailure("ApplyFailed", f"{kind} {name}: {api_error_message(error)}")
