"""Merge a user's pod template over ours, as a strategic merge patch does: lists whose items have an identity by key.

The user's template may hold any JSON anywhere. A part that cannot be merged replaces ours; the API server explains what
is wrong with it.
"""

from collections.abc import Mapping
from typing import Any, TypeGuard

# The patch merge keys of corev1.PodSpec's lists; other lists replace ours.
_MERGE_KEYS = {
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "env": "name",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "ports": "containerPort",
    "imagePullSecrets": "name",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
    "resourceClaims": "name",
}
# Lists without an identity, to which a user's items are added, so that no term of either is lost.
_APPENDED = {
    "tolerations",
    "envFrom",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
}


def overlay(base: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return the base with the patch over it; null in the patch removes a field."""
    merged = dict(base)
    for key, value in patch.items():
        before = merged.get(key)
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(before, Mapping):
            merged[key] = overlay(before, value)
        elif (identity := _MERGE_KEYS.get(key)) and _are_keyed(before, identity) and _are_keyed(value, identity):
            merged[key] = _merge_by(identity, before, value)
        elif key in _APPENDED and isinstance(value, list) and isinstance(before, list):
            merged[key] = [*before, *value]
        else:
            merged[key] = value
    return merged


def _are_keyed(items: Any, identity: str) -> TypeGuard[list[Mapping[str, Any]]]:
    """Return whether it is a list whose items have an identity."""
    return isinstance(items, list) and all(
        isinstance(item, Mapping) and isinstance(item.get(identity), str | int) for item in items
    )


def _merge_by(identity: str, base: list[Mapping[str, Any]], patch: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
    merged = {item[identity]: dict(item) for item in base}
    for item in patch:
        merged[item[identity]] = overlay(merged.get(item[identity], {}), item)
    return list(merged.values())
