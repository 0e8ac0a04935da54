"""Parts of pods, from the fields of a pool."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from workergroups_api.launch import digest
from workergroups_api.manifest import Manifest
from workergroups_api.pod_settings import ClaimingResources, PodTemplate, Resources, Toleration, Volume
from workergroups_api.resource_pool import ResourcePool
from workergroups_api.vocabulary import TaintEffect, TolerationOperator
from workergroups_common.quantities import value_of
from workergroups_operator.policy.preflight import SHARED_MEMORY_PATH
from workergroups_operator.templates.pod_overlay import overlay

_SHARED_MEMORY = "shared-memory"
# Kubernetes would give each pod a token, and variables for each Service: one called vllm sets VLLM_PORT.
NOTHING_UNASKED = {"automountServiceAccountToken": False, "enableServiceLinks": False}


def given(field: str, value: Any) -> dict[str, Any]:
    """Return the field unless it is empty: a field that is not set must not make running pods look outdated."""
    return {field: value} if value else {}


def pull_secrets(pool: ResourcePool) -> dict[str, Any]:
    """Return the pull secrets that the pool or its template names: every pod with the pool's image needs them."""
    template = pool.spec.pod_template
    theirs = (template.spec or {}).get("imagePullSecrets") if template else None
    return overlay(named_pull_secrets(pool), given("imagePullSecrets", theirs))


def named_pull_secrets(pool: ResourcePool) -> dict[str, Any]:
    """Return the pull secrets that the pool names; the operator merges its template later."""
    return given("imagePullSecrets", [secret.to_json() for secret in pool.spec.image_pull_secrets])


def tolerations(pool: ResourcePool) -> list[dict[str, Any]]:
    """Return the pool's tolerations, and one for nodes that are reserved for pods with devices."""
    resource = pool.spec.accelerator.resource
    taint = Toleration(key=resource, operator=TolerationOperator.EXISTS, effect=TaintEffect.NO_SCHEDULE)
    return [toleration.to_json() for toleration in (*pool.spec.tolerations, *([taint] if resource else ()))]


def environment(pool: ResourcePool, *ours: Manifest) -> dict[str, Any]:
    """Return a container's environment: ours, with the pool's over it."""
    theirs = [variable.to_json() for variable in pool.spec.env]
    taken = {variable["name"] for variable in theirs}
    sources = [source.to_json() for source in pool.spec.env_from]
    env = [*(variable for variable in ours if variable["name"] not in taken), *theirs]
    return {"env": env} | given("envFrom", sources)


def resources(
    asked: Resources,
    requests: Mapping[str, str],
    limits: Mapping[str, str] | None = None,
    unlimited: Collection[str] = (),
) -> dict[str, Any]:
    """Return a container's resources: what is asked, and the defaults of the rest.

    A limit is also the request, as in any pod. A request is also the limit, since more of a device cannot be used, and
    a container that uses more memory than it requests is the first to be evicted. But a container may use idle CPUs.

    Args:
        asked: What the pool sets.
        requests: What the container requests of resources that the pool does not set.
        limits: Limits of resources for which the pool sets neither. That of CPUs grows with the pool's request.
        unlimited: Resources that get no default limit.
    """
    wanted = {**asked.limits, **asked.requests}
    defaults = {name: amount for name, amount in (limits or {}).items() if name not in unlimited}
    if "cpu" in defaults and "cpu" in wanted:
        defaults["cpu"] = str(max(whole_cpus(defaults["cpu"]), whole_cpus(wanted["cpu"]) + 1))
    as_requested = {name: amount for name, amount in asked.requests.items() if name != "cpu"}
    claims = [claim.to_json() for claim in asked.claims] if isinstance(asked, ClaimingResources) else []
    return {
        "requests": {**requests, **wanted},
        **given("limits", {**defaults, **as_requested, **asked.limits}),
        **given("claims", claims),
    }


def named_resources(template: PodTemplate | None, container: str) -> set[str]:
    """Return which resources a user's template names for a container; it may hold any JSON."""
    containers = (template.spec or {}).get("containers") if template else None
    found: set[str] = set()
    for each in containers if isinstance(containers, list) else []:
        theirs = each.get("resources") if isinstance(each, Mapping) and each.get("name") == container else None
        parts = theirs.values() if isinstance(theirs, Mapping) else ()
        found |= {str(name) for part in parts if isinstance(part, Mapping) for name in part}
    return found


def with_dns(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the spec with the DNS policy that a pod in its node's network needs to find the cluster's services."""
    if spec.get("hostNetwork") is True and "dnsPolicy" not in spec:
        return {**spec, "dnsPolicy": "ClusterFirstWithHostNet"}
    return dict(spec)


def head_volumes(pool: ResourcePool) -> list[Volume]:
    """Return the volumes of the pool that the head mounts."""
    return [volume for volume in pool.spec.volumes if volume.is_in_head]


def node_volumes(pool: ResourcePool) -> list[Volume]:
    """Return the volumes of the pool that its nodes mount."""
    return [volume for volume in pool.spec.volumes if volume.is_in_nodes]


def volumes(mounted: Sequence[Volume], shared_memory: str | None) -> list[Manifest]:
    """Return the volumes of a pod, and shared memory, unless one of them is mounted there.

    Without a size, kubelet gives it the memory limit of the pod, or else the memory of the node. KubeRay would give it
    what the pod requests, which is little if the pool does not set it.
    """
    limit = given("sizeLimit", shared_memory)
    shared = {"name": _SHARED_MEMORY, "emptyDir": {"medium": "Memory", **limit}}
    sources = [{**volume.source, "name": _volume_name(volume)} for volume in mounted]
    return sources if _is_shared_memory_taken(mounted) else [*sources, shared]


def mounts(mounted: Sequence[Volume]) -> list[Manifest]:
    """Return the mounts of these volumes."""
    shared = {"name": _SHARED_MEMORY, "mountPath": SHARED_MEMORY_PATH}
    theirs = [{**volume.mount, "name": _volume_name(volume)} for volume in mounted]
    return theirs if _is_shared_memory_taken(mounted) else [*theirs, shared]


def _is_shared_memory_taken(mounted: Sequence[Volume]) -> bool:
    return any(volume.mount_path.rstrip("/") == SHARED_MEMORY_PATH for volume in mounted)


def _volume_name(volume: Volume) -> str:
    return f"volume-{digest(volume.mount_path)[:10]}"


def whole_cpus(quantity: str) -> int:
    """Return how many whole CPUs a quantity of Kubernetes is, at least one: 28, 1.5, 500m and 2k are 28, 1, 1 and 2000.

    A quantity that cannot be read counts as one CPU; the API server refuses the pod that has it.
    """
    return max(1, int(value_of(quantity) or 1))
