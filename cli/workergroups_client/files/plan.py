"""What applying objects would create, change or leave, by the API server's dry run."""

from __future__ import annotations

import json
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from workergroups_api.manifest import CONFIG_MAP, RESOURCE_POOL, SECRET, WORKER_GROUP, Manifest
from workergroups_api.names import RESTARTED_AT_ANNOTATION
from workergroups_api.references import code_of_group
from workergroups_api.roll_names import asked_roll

from ..api_server.cluster import Cluster
from ..errors import ClientError, ConflictError, NotFoundError

_LONGEST_VALUE = 60
_SERVERS_OWN = ("managedFields", "generation", "resourceVersion", "uid", "creationTimestamp")


class Action(str, Enum):
    """What happens to an object."""

    CREATE = "create"
    CHANGE = "change"
    LEAVE = "leave"


@dataclass(frozen=True)
class PlanStep:
    """What applying a manifest does to its object."""

    what: str
    """Kind and name."""
    action: Action
    fields: tuple[str, ...] = ()
    """The fields that change, such as ``spec.nodes: 1 -> 2``, and what else that the object does not say."""
    kept: tuple[str, ...] = ()
    """Fields that others have set, and that the manifest lacks, so that they stay."""

    def __str__(self) -> str:
        return f"{self.action.value} {self.what}" + (f" ({', '.join(self.fields)})" if self.fields else "")


def plan(cluster: Cluster, manifests: Sequence[Manifest], *, force: bool = False) -> list[PlanStep]:
    """Return a step for each manifest, and change nothing.

    Raises:
        NotFoundError: The cluster has no such kind or namespace, and none of the manifests defines it.
        ClientError: The API server rejects one of them, or another tool holds fields of it.
    """
    steps = [_step(cluster, manifest, manifests, force=force) for manifest in manifests]
    new_code = {
        manifest["metadata"]["name"]
        for manifest, step in zip(manifests, steps, strict=True)
        if manifest["kind"] == CONFIG_MAP.kind
        and step.action is Action.CHANGE
        # Pools and groups are in the cluster's default namespace.
        and manifest["metadata"].get("namespace", cluster.namespace) == cluster.namespace
    }
    return [_with_code(step, manifest, new_code) for manifest, step in zip(manifests, steps, strict=True)]


def name_of(manifest: Manifest) -> str:
    """Return kind and name of an object."""
    return f"{manifest['kind']} {manifest['metadata']['name']}"


def explained(manifest: Manifest, error: ConflictError, changes: Sequence[str] = ()) -> ClientError:
    """Return the error for an object of which another tool holds fields.

    Args:
        manifest: The object.
        error: What the API server says.
        changes: What would change if these fields were taken over.
    """
    shown = f", and changes {', '.join(changes)}" if changes else ""
    return ClientError(f"{name_of(manifest)}: {error}. With --force-conflicts, up takes these fields over{shown}")


def changed_fields(before: Manifest, after: Manifest) -> tuple[str, ...]:
    """Return the fields that differ, with short values; a list counts as one field.

    The status, and what the server counts, is left out. Values of a Secret are not shown.
    """
    differences = _differences(_content(before), _content(after))
    if after["kind"] == SECRET.kind:
        return tuple(path for path, _ in differences)
    return tuple(f"{path}{shown}" for path, shown in differences)


def foreign_fields(cluster: Cluster, manifest: Manifest, stored: Manifest) -> tuple[str, ...]:
    """Return the fields of a pool's or a group's spec that another tool has set, and that the manifest does not have.

    Applying the manifest leaves them, whatever it says. Each has its value, who has set it, and how to remove it.
    """
    if manifest["kind"] not in (RESOURCE_POOL.kind, WORKER_GROUP.kind):
        return ()
    metadata, spec = stored["metadata"], stored.get("spec") or {}
    managers = {
        field.removeprefix("f:"): str(entry.get("manager"))
        for entry in metadata.get("managedFields") or ()
        if "subresource" not in entry
        for field in (entry.get("fieldsV1") or {}).get("f:spec", ())
    }
    found = sorted(managers.keys() & spec.keys() - (manifest.get("spec") or {}).keys())
    name = f"{manifest['kind'].lower()} {metadata['name']} {cluster.options}"
    return tuple(
        f"spec.{field}{_value(spec[field])} stays: {managers[field]} has set it, and the file does not have it; to "
        f"remove it: kubectl patch {name} --type=json --patch='{_removal(field)}'"
        for field in found
    )


def _removal(field: str) -> str:
    return json.dumps([{"op": "remove", "path": f"/spec/{field}"}])


def _value(value: Any) -> str:
    return f"={_text(value)}" if isinstance(value, str | int | float) and len(str(value)) <= _LONGEST_VALUE else ""


def _step(cluster: Cluster, manifest: Manifest, manifests: Sequence[Manifest], *, force: bool) -> PlanStep:
    what = name_of(manifest)
    try:
        before = cluster.present(manifest)
        after = cluster.apply(manifest, force=force, dry_run=True)
    except NotFoundError:
        if any(_defines(other, manifest, cluster.namespace) for other in manifests):
            return PlanStep(what, Action.CREATE)
        raise
    except ConflictError as error:
        forced = cluster.apply(manifest, force=True, dry_run=True)
        raise explained(manifest, error, changed_fields(before, forced) if before else ()) from error
    if before is None:
        return PlanStep(what, Action.CREATE)
    fields = changed_fields(before, after)
    action = Action.CHANGE if fields else Action.LEAVE
    pending = _pending_restart(before, after, cluster.options) if fields else ()
    return PlanStep(what, action, (*fields, *pending), foreign_fields(cluster, manifest, after))


def _pending_restart(before: Manifest, after: Manifest, options: str) -> tuple[str, ...]:
    """Say that a restart of a pool, which waits since it cannot begin, may begin with this change."""
    last = before.get("status", {}).get("roll")
    is_pending = all(asked_roll(each["metadata"], last) is not None for each in (before, after))
    if before["kind"] != RESOURCE_POOL.kind or not is_pending:
        return ()
    cancel = f"kubectl annotate resourcepool {after['metadata']['name']} {options} {RESTARTED_AT_ANNOTATION}-"
    return (f"the restart that waits may begin now, which ends ranks; to cancel it, before: {cancel}",)


def _with_code(step: PlanStep, manifest: Manifest, new_code: Container[str]) -> PlanStep:
    """Return the step of a group with what its own fields do not show: new code starts its ranks again."""
    if manifest["kind"] != WORKER_GROUP.kind or step.action is Action.CREATE:
        return step
    name = code_of_group(manifest["spec"])
    if name is None or name not in new_code:
        return step
    return replace(step, fields=(*step.fields, f"ConfigMap {name} changes, so its ranks start again"))


def _defines(other: Manifest, manifest: Manifest, namespace: str) -> bool:
    """Return whether an object is the namespace of a manifest, or defines its kind."""
    if other["kind"] == "Namespace":
        return bool(other["metadata"]["name"] == manifest["metadata"].get("namespace", namespace))
    if other["kind"] == "CustomResourceDefinition":
        group = manifest["apiVersion"].rpartition("/")[0]
        return bool((other["spec"]["group"], other["spec"]["names"]["kind"]) == (group, manifest["kind"]))
    return False


def _content(manifest: Manifest) -> Manifest:
    metadata = {name: value for name, value in manifest["metadata"].items() if name not in _SERVERS_OWN}
    return {**{name: value for name, value in manifest.items() if name != "status"}, "metadata": metadata}


def _differences(before: Any, after: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted(before.keys() | after.keys()):
            yield from _differences(before.get(name), after.get(name), f"{path}.{name}" if path else name)
    elif before != after:
        yield path, _shown(before, after)


def _shown(before: Any, after: Any) -> str:
    """Return how a value changes, if both are short and on one line, else nothing."""
    if isinstance(before, dict | list) or isinstance(after, dict | list):
        return ""
    values = [_text(value) for value in (before, after)]
    if any("\n" in value or len(value) > _LONGEST_VALUE for value in values):
        return ""
    return f": {' -> '.join(values)}"


def _text(value: Any) -> str:
    """Return a value as YAML has it."""
    if value is None:
        return "unset"
    return str(value).lower() if isinstance(value, bool) else str(value)
