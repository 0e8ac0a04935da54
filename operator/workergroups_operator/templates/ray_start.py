"""What `ray start` is given for head and nodes, which KubeRay has next to the pod templates.

A change of it must wait for a restart as the rest of the pod does. So it is noted on the template, and read from there.
"""

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from workergroups_api.manifest import Manifest
from workergroups_api.model import ApiModel
from workergroups_api.names import RAY_START_ANNOTATION
from workergroups_api.pod_settings import Head
from workergroups_api.ray_node import RayNode
from workergroups_api.resource_pool import ResourcePool
from workergroups_operator.templates.pod_parts import given, whole_cpus
from workergroups_operator.templates.stamp import note

# What verl's trainers start beside their ranks, on one node: TransferQueue holds 9 CPUs, and of the fully asynchronous
# trainers each holds 10.
SPARE_CPUS = 24
_Model = TypeVar("_Model", bound=ApiModel)


def head_note(head: Head) -> dict[str, str]:
    """Return the annotation of the head's template; none without tasks in the head."""
    return _note(head.model_dump(mode="json", by_alias=True, exclude_defaults=True, include={"spare_cpus"}))


def node_note(pool: ResourcePool) -> dict[str, str]:
    """Return the annotation of the nodes' template; none without custom resources and labels."""
    return _note(pool.spec.ray.model_dump(mode="json", exclude_defaults=True))


def head_start(template: Manifest) -> dict[str, Any]:
    """Return the fields of the head's group that are no template.

    Without a number of CPUs, KubeRay would take the container's limit, and Ray would send the head tasks.
    """
    cpus = _noted(Head, template).spare_cpus
    return {"rayStartParams": {"dashboard-host": "0.0.0.0", "num-gpus": "0", "num-cpus": str(cpus)}}


def node_start(pool: ResourcePool, template: Manifest) -> dict[str, Any]:
    """Return the fields of a pool's node group that are no template."""
    named = _noted(RayNode, template)
    count, device = pool.spec.devices_per_node, pool.spec.accelerator.ray_name
    gpus, devices = (count, {}) if device == "GPU" else (0, {device: count})
    resources = {**named.resources, **devices}
    return {
        "rayStartParams": {
            "num-cpus": str(cpu_count(pool)),
            "num-gpus": str(gpus),
            **given("resources", resources and f"'{json.dumps(resources)}'"),
        },
        **given("labels", named.labels),
    }


def cpu_count(pool: ResourcePool) -> int:
    """Return the logical CPUs of each node of the pool: one for each rank that fits, and some for tasks and helpers.

    Ray's count must not restrict what the bundles allow. The bundles hold the CPUs of the ranks.
    """
    spec, asked = pool.spec, pool.spec.resources.amount("cpu")
    spare = max(whole_cpus(asked) if asked else 0, SPARE_CPUS) if spec.spare_cpus is None else spec.spare_cpus
    return spec.processes_per_node * spec.max_colocate_count + spare


def _note(said: Mapping[str, Any]) -> dict[str, str]:
    return {RAY_START_ANNOTATION: json.dumps(said, sort_keys=True)} if said else {}


def _noted(model: type[_Model], template: Manifest) -> _Model:
    """Return what the template's note says; a user's template may have any text in its place."""
    try:
        return model.model_validate_json(note(template, RAY_START_ANNOTATION) or "{}")
    except ValidationError:
        return model()
