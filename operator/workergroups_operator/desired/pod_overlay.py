"""A user's pod template merged over ours, as a strategic merge patch does: lists of things with an identity by key."""

from collections.abc import Mapping, Sequence
from typing import Any

# The patch merge keys of corev1.PodSpec's lists; lists that are not named here are replaced.
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
# Lists without identity to which a user adds.
_APPENDED = {"tolerations", "envFrom"}


def overlay(base: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """The base with the patch over it; null in the patch removes a field."""
    merged = dict(base)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(merged.get(key), Mapping):
            merged[key] = overlay(merged[key], value)
        elif key in _MERGE_KEYS and isinstance(merged.get(key), Sequence):
            merged[key] = _merge_by(_MERGE_KEYS[key], merged[key], value)
        elif key in _APPENDED:
            merged[key] = [*merged.get(key, ()), *value]
        else:
            merged[key] = value
    return merged


def _merge_by(
    identity: str, base: Sequence[Mapping[str, Any]], patch: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    merged = {item.get(identity): dict(item) for item in base}
    for item in patch:
        name = item.get(identity)
        merged[name] = overlay(merged.get(name, {}), item)
    return list(merged.values())
