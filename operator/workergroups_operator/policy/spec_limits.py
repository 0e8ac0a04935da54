"""How much a spec may hold, so that its neighbours keep their room in memory and in etcd."""

import json
from collections.abc import Mapping
from typing import Any

from workergroups_api.bounded_json import ExceededLimit, Limits, check
from workergroups_api.conditions import Explanation
from workergroups_api.manifest import RESOURCE_POOL, WORKER_GROUP, Kind

# What users write nests less deep; `metadata.managedFields` repeats it, a few levels deeper.
_DEPTH = 64
ARGUMENTS = Limits(size=256 * 2**10, depth=_DEPTH, values=20_000)
POOL = Limits(size=2**20, depth=_DEPTH, values=10_000)

_LIMITS = {RESOURCE_POOL: POOL, WORKER_GROUP: ARGUMENTS}
_WAYS_OUT: Mapping[Kind, Mapping[str, str]] = {
    WORKER_GROUP: {
        "worker": "put large or deep values into a file of the image, a volume or spec.code, and pass its path",
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
    """Explain which part of the spec is more than is served; None if all parts are within their limits."""
    for part, way_out in _WAYS_OUT[kind].items():
        try:
            check(json.dumps(spec.get(part)).encode(), _LIMITS[kind])
        except ExceededLimit as error:
            return Explanation("InvalidSpec", f"spec.{part}: {error}: {way_out}")
    return None
