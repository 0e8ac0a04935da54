"""Parts of pods, from the fields of a pool."""

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from workergroups_api.launch import digest
from workergroups_api.manifest import Manifest
from workergroups_api.pod_settings import PodTemplate, Volume
from workergroups_api.resource_pool import ResourcePool
from workergroups_operator.templates.pod_overlay import overlay

_SHARED_MEMORY = "shared-memory"
_FACTORS = {
    "": Fraction(1),
    "m": Fraction(1, 1000),
    **{suffix: Fraction(1000**power) for power, suffix in enumerate("kMGTP", 1)},
    **{f"{suffix}i": Fraction(1024**power) for power, suffix in enumerate("KMGTP", 1)},
}
_QUANTITY = re.compile(r"([0-9]+(?:[.][0-9]+)?)(m|[kMGTP]|[KMGTP]i)?")


def given(field: str, value: Any) -> dict[str, Any]:
    """Return the field unless it is empty: a field that nobody set must not make running pods look outdated."""
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
    for_device = [{"key": resource, "operator": "Exists", "effect": "NoSchedule"}] if resource else []
    return [*(toleration.to_json() for toleration in pool.spec.tolerations), *for_device]


def environment(pool: ResourcePool, *ours: Manifest) -> dict[str, Any]:
    """Return a container's environment: ours, with the pool's over it."""
    theirs = [variable.to_json() for variable in pool.spec.env]
    taken = {variable["name"] for variable in theirs}
    sources = [source.to_json() for source in pool.spec.env_from]
    env = [*(variable for variable in ours if variable["name"] not in taken), *theirs]
    return {"env": env} | given("envFrom", sources)


def resources(
    asked: Mapping[str, str], at_least: Mapping[str, str], devices: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return requests, `at_least` those of every pod, and limits, except for CPUs: a pod may use idle ones."""
    limits = {name: amount for name, amount in asked.items() if name != "cpu"} | dict(devices or {})
    return {"requests": {**at_least, **asked, **(devices or {})}} | given("limits", limits)


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


def volumes(pool: ResourcePool) -> list[Manifest]:
    """Return the pool's volumes, and shared memory if the pool sets its size."""
    size = pool.spec.shared_memory
    shared = [{"name": _SHARED_MEMORY, "emptyDir": {"medium": "Memory", "sizeLimit": size}}] if size else []
    return [*({**volume.source, "name": _volume_name(volume)} for volume in pool.spec.volumes), *shared]


def mounts(pool: ResourcePool) -> list[Manifest]:
    """Return the mounts of these volumes."""
    shared = [{"name": _SHARED_MEMORY, "mountPath": "/dev/shm"}] if pool.spec.shared_memory else []
    return [*({**volume.mount, "name": _volume_name(volume)} for volume in pool.spec.volumes), *shared]


def _volume_name(volume: Volume) -> str:
    return f"volume-{digest(volume.mount_path)[:10]}"


def whole_cpus(quantity: str) -> int:
    """Return how many whole CPUs a quantity of Kubernetes is, at least one: 28, 1.5, 500m and 2k are 28, 1, 1 and 2000.

    A quantity that cannot be read counts as one CPU; the API server refuses the pod that has it.
    """
    found = _QUANTITY.fullmatch(quantity)
    return max(1, int(Fraction(found[1]) * _FACTORS[found[2] or ""])) if found else 1
