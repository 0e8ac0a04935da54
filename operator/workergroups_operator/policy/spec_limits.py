"""How large a spec may be, so that it does not take memory, space in etcd or nodes from its neighbours."""

import json
from collections.abc import Mapping
from typing import Any

from workergroups_api.conditions import Explanation
from workergroups_api.launch import MAX_ENV_BYTES, env_bytes
from workergroups_api.manifest import RESOURCE_POOL, WORKER_GROUP, Kind
from workergroups_api.resource_pool import ResourcePool
from workergroups_api.vocabulary import Reason
from workergroups_common.bounded_json import ExceededLimit, Limits, check

# Specs nest less deep than this; `metadata.managedFields` repeats them, a few levels deeper.
_DEPTH = 64
ARGUMENTS = Limits(size=256 * 2**10, depth=_DEPTH, values=20_000)
# KubeRay copies the environment into an init container of each pod, and etcd's limit for a pod is 1.5 MiB.
POOL = Limits(size=512 * 2**10, depth=_DEPTH, values=10_000)
# The kernel's limit for one variable of a process, name and value together.
_MAX_VARIABLE_BYTES = 128 * 2**10

# Characters of the labels and annotations of a pool that the operator reads or passes on to the RayCluster.
MAX_METADATA = 16 * 2**10

_LIMITS = {RESOURCE_POOL: POOL, WORKER_GROUP: ARGUMENTS}
_WAYS_OUT: Mapping[Kind, Mapping[str, str]] = {
    WORKER_GROUP: {
        "worker": "put large or deep values into a file of the image, a volume or spec.code, and pass its path",
        "run": "put large or deep values into a file of the image, a volume or spec.code, and pass its path",
        "roles": "put large or deep values into a file of the image, a volume or spec.code, and pass its path",
    },
    RESOURCE_POOL: {
        "podTemplate": "remove what nests deep, and move what is large into a ConfigMap",
        "head": "remove what nests deep, and move what is large into a ConfigMap",
        "env": "move large values into a ConfigMap and name it in spec.envFrom",
        "volumes": "remove what nests deep, and use fewer volumes",
    },
}


def excess(kind: Kind, spec: Mapping[str, Any]) -> Explanation | None:
    """Explain which part of the spec exceeds its limits; None if all parts are within them."""
    for part, way_out in _WAYS_OUT[kind].items():
        try:
            check(json.dumps(spec.get(part)).encode(), _LIMITS[kind])
        except ExceededLimit as error:
            return Explanation(Reason.INVALID_SPEC, f"spec.{part}: {error}: {way_out}")
    return None


def unfit_metadata(metadata: Mapping[str, Any]) -> Explanation | None:
    """Explain why a pool's labels and annotations, as far as the operator reads or passes them on, are too large."""
    found = [
        (len(key) + len(value), key) for field in ("labels", "annotations") for key, value in metadata[field].items()
    ]
    size = sum(each for each, _ in found)
    if size <= MAX_METADATA:
        return None
    return Explanation(
        Reason.INVALID_SPEC,
        f"the labels and annotations that the operator reads or passes on have {size} characters, and may have "
        f"{MAX_METADATA}: shorten or remove {max(found)[1]}",
    )


def unfit_group_env(env: Mapping[str, str]) -> Explanation | None:
    """Explain why no process can be started with a group's environment; None if one can."""
    size = env_bytes(env)
    if size <= MAX_ENV_BYTES:
        return None
    return Explanation(
        Reason.INVALID_SPEC,
        f"spec.env has {size} bytes as Ray passes it on, and may have {MAX_ENV_BYTES}, or no process can be started "
        "with it: move large values into a file, or into a Secret or ConfigMap that the pool names in spec.envFrom",
    )


def unfit_pool_env(pool: ResourcePool) -> Explanation | None:
    """Explain which variable no container can be started with; None if there is none."""
    for variable in pool.spec.env:
        size = len(f"{variable.name}={variable.value or ''}".encode(errors="replace")) + 1
        if size > _MAX_VARIABLE_BYTES:
            return Explanation(
                Reason.INVALID_SPEC,
                f"spec.env: {variable.name} has {size} bytes, and a variable may have {_MAX_VARIABLE_BYTES}, or no "
                "container can be started with it: mount the value as a file with spec.volumes",
            )
    return None
