"""Which RayCluster a pool names, and which pools and ConfigMap a group names, with the defaults; read from any spec.

These read raw specs as well: what was stored before today's schema, or what has not been validated yet.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeGuard

# The longest name of any object in Kubernetes.
LONGEST_NAME: Final = 253


def cluster_of_pool(name: str, spec: Mapping[str, Any]) -> str:
    """Return the RayCluster that a pool names; the default is its own name.

    A pool that was stored before today's schema may name what cannot be a name. It counts as a cluster of its own, so
    that the operator looks at it there and reports what is wrong.
    """
    cluster = spec.get("clusterName")
    return cluster if _can_be_name(cluster) else name


def pools_of_group(name: str, spec: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the pools that a group names, in rank order; the default is the pool of its own name."""
    pools = spec.get("pools")
    refs = pools if isinstance(pools, (list, tuple)) else ()
    named = (ref.get("name") for ref in refs if isinstance(ref, Mapping))
    return tuple(pool for pool in named if _can_be_name(pool)) or (name,)


def code_of_group(spec: Mapping[str, Any]) -> str | None:
    """Return the ConfigMap with the code of a group; ``None`` if it names none."""
    code = spec.get("code")
    ref = code.get("configMap") if isinstance(code, Mapping) else None
    name = ref.get("name") if isinstance(ref, Mapping) else None
    return name if _can_be_name(name) else None


def _can_be_name(value: Any) -> TypeGuard[str]:
    return isinstance(value, str) and 0 < len(value) <= LONGEST_NAME
