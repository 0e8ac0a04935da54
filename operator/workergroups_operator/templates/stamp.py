"""What the operator notes on Ray's pod templates, and so on the pods: which template it is, and what it comes from."""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from workergroups_api.launch import digest
from workergroups_api.manifest import Manifest, annotations_of
from workergroups_api.names import MADE_FROM_ANNOTATION, ROLL_ANNOTATION, TEMPLATE_ANNOTATION
from workergroups_api.resource_pool import ResourcePool, ResourcePoolSpec, Shapes, shapes

_NOTES = (TEMPLATE_ANNOTATION, MADE_FROM_ANNOTATION, ROLL_ANNOTATION)
_UID, _IMAGE = "uid", "image"


def stamped_nodes(template: Manifest, pool: ResourcePool, image: str) -> Manifest:
    """Return the template of a pool's nodes with its notes."""
    return _stamped(template, _made_from(pool, image, Shapes.NODES))


def stamped_head(template: Manifest, oldest: ResourcePool, image: str) -> Manifest:
    """Return the head's template with its notes."""
    return _stamped(template, _made_from(oldest, image, Shapes.HEAD))


def note(body: Manifest, name: str) -> str | None:
    """Return one of the notes on a pod or on a template; None without it."""
    noted = annotations_of(body)
    return str(noted[name]) if name in noted else None


def digest_of(template: Manifest) -> str | None:
    """Return the digest that is noted on a pod or on a template; None without it."""
    return note(template, TEMPLATE_ANNOTATION)


def with_roll(template: Manifest, roll: str | None) -> Manifest:
    """Return the template with the name of this roll; None is for no roll."""
    noted = {key: value for key, value in template["metadata"]["annotations"].items() if key != ROLL_ANNOTATION}
    return _annotated(template, noted if roll is None else {**noted, ROLL_ANNOTATION: roll})


def as_applied(template: Manifest | None) -> Manifest | None:
    """Return a template of the live RayCluster as the operator applied it; None if it was changed since.

    The API server adds the protocol to ports that have none.
    """
    metadata = template.get("metadata") if isinstance(template, Mapping) else None
    if template is None or not isinstance(metadata, Mapping) or not isinstance(metadata.get("annotations"), Mapping):
        return None
    for candidate in (template, _without_protocol(template)):
        if digest_of(candidate) == digest(_without_notes(candidate)):
            return candidate
    return None


def changed_fields(old: Manifest, new: Manifest) -> list[str] | None:
    """Return which fields of the spec differ between two templates; None if that is unknown.

    It is unknown if an earlier version of the operator made the old one, or if another pool shaped it.
    """
    before, after = _noted_fields(old), _noted_fields(new)
    if before.get(_UID) != after.get(_UID):
        return None
    fields = sorted(before.keys() | after.keys(), key=lambda field: (field != _IMAGE, field))
    return [_described(field, before, after) for field in fields if before.get(field) != after.get(field)]


def is_made_from(template: Manifest, pool: ResourcePool) -> bool:
    """Return whether the pool shaped the template."""
    return _noted_fields(template).get(_UID) == pool.uid


def is_of_other_pool(old: Manifest, new: Manifest) -> bool:
    """Return whether another pool than that of the new template shaped the old one."""
    return _noted_fields(old).get(_UID) not in (None, _noted_fields(new).get(_UID))


def _described(field: str, before: Mapping[str, str], after: Mapping[str, str]) -> str:
    if field == _IMAGE:
        return f"image: runs {before.get(field)}, the spec says {after.get(field)}"
    return field


def _made_from(pool: ResourcePool, image: str, pods: Shapes) -> dict[str, str]:
    written = pool.spec.model_dump(
        mode="json", by_alias=True, exclude_defaults=True, include={*_fields_that_shape(pods)}
    )
    return {_UID: pool.uid, _IMAGE: image, **{field: digest(value) for field, value in written.items()}}


@cache
def _fields_that_shape(pods: Shapes) -> frozenset[str]:
    """Return the marked fields, but for the image, which may also come from the chart."""
    marks = {name: shapes(field) for name, field in ResourcePoolSpec.model_fields.items()}
    return frozenset(name for name, mark in marks.items() if mark in (pods, Shapes.PODS)) - {_IMAGE}


def _stamped(template: Manifest, made_from: Mapping[str, str]) -> Manifest:
    theirs = template["metadata"].get("annotations") or {}
    notes = {TEMPLATE_ANNOTATION: digest(template), MADE_FROM_ANNOTATION: json.dumps(made_from, sort_keys=True)}
    return _annotated(template, {**theirs, **notes})


def _annotated(template: Manifest, annotations: Mapping[str, Any]) -> Manifest:
    return {**template, "metadata": {**template["metadata"], "annotations": dict(annotations)}}


def _without_notes(template: Manifest) -> Manifest:
    metadata = dict(template["metadata"])
    theirs = {key: value for key, value in (metadata.pop("annotations", None) or {}).items() if key not in _NOTES}
    return {**template, "metadata": metadata | ({"annotations": theirs} if theirs else {})}


def _noted_fields(template: Manifest) -> dict[str, str]:
    try:
        return dict(json.loads(note(template, MADE_FROM_ANNOTATION) or "{}"))
    except (TypeError, ValueError):
        return {}


def _without_protocol(value: Any) -> Any:
    """Return the template without the protocol of its containers' ports, if that is the default."""
    if isinstance(value, list):
        return [_without_protocol(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    is_port = "containerPort" in value and value.get("protocol") == "TCP"
    return {key: _without_protocol(item) for key, item in value.items() if not (is_port and key == "protocol")}
