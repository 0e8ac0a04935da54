"""CustomResourceDefinitions from the models: `python -m workergroups_api.crd DIRECTORY...` writes them."""

import sys
from pathlib import Path
from typing import Any

import yaml
from yaml.resolver import Resolver

from workergroups_api import resource_pool, worker_group
from workergroups_api.model import ApiObject
from workergroups_api.names import GROUP, VERSION
from workergroups_api.vocabulary import ConditionType

# Keywords of pydantic's JSON schema that a structural schema does not allow or need.
_DROPPED = ("title", "$defs", "const")
# Defaults that need not be written.
_EMPTY: tuple[Any, ...] = (None, [], {})
_YAML = Resolver()
_TEXT = "tag:yaml.org,2002:str"


def _resolved(node: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """Inline a reference, and turn `X | None` into an optional X."""
    while "$ref" in node or "anyOf" in node:
        node = dict(node)
        if "$ref" in node:
            node = definitions[node.pop("$ref").rsplit("/", 1)[1]] | node
        else:
            (option,) = [option for option in node.pop("anyOf") if option.get("type") != "null"]
            node = option | node
    return node


def _yaml_text(word: Any) -> Any:
    """Return a value of an enum; raise ValueError if YAML 1.1, which kubectl reads, takes it for anything but text."""
    tag = _YAML.resolve(yaml.ScalarNode, word, (True, False)) if isinstance(word, str) else None  # type: ignore[no-untyped-call]
    # PyYAML leaves out these two of YAML's words for true and false.
    if tag != _TEXT or word.lower() in ("y", "n"):
        raise ValueError(f"without quotes, YAML reads the enum value {word!r} as something else: choose another word")
    return word


def _structural(node: Any, definitions: dict[str, Any]) -> Any:
    """Return a JSON schema as the API server requires it: without references, unions and nulls."""
    if isinstance(node, list):
        return [_structural(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    node = _resolved(node, definitions)
    result: dict[str, Any] = {}
    for key, value in node.items():
        if key == "properties":
            result[key] = {name: _structural(field, definitions) for name, field in value.items()}
        elif key == "default":
            default = _without_empty(value)
            result |= {key: default} if default not in _EMPTY else {}
        elif key == "enum":
            result[key] = [_yaml_text(word) for word in value]
        elif key not in _DROPPED:
            result[key] = _structural(value, definitions)
    if result.get("x-kubernetes-preserve-unknown-fields"):
        result.pop("additionalProperties", None)
    return result


def _without_empty(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: item for key, item in value.items() if item not in _EMPTY}
    return value


def _schema(kind: type[ApiObject], rules: dict[str, Any]) -> dict[str, Any]:
    raw = kind.model_json_schema(by_alias=True)
    schema: dict[str, Any] = _structural(raw, raw.get("$defs", {}))
    for field in kind.model_fields["spec"].annotation.model_fields.values():  # type: ignore[union-attr]
        if mark := resource_pool.shapes(field):
            schema["properties"]["spec"]["properties"][field.alias]["description"] += f" {mark.value}"
    schema["properties"]["metadata"] = {"type": "object"}
    schema["properties"]["status"].pop("default", None)
    schema["required"] = ["spec"]
    properties = {
        "apiVersion": {"type": "string", "description": f"{GROUP}/{VERSION}"},
        "kind": {"type": "string", "description": kind.__name__},
    } | schema["properties"]
    return schema | {"properties": properties} | rules


def _condition(type_: ConditionType, field: str) -> str:
    return f'.status.conditions[?(@.type=="{type_}")].{field}'


def _column(name: str, type_: str, path: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, "jsonPath": path} | more


def _crd(
    kind: type[ApiObject],
    plural: str,
    short_names: list[str],
    rules: dict[str, Any],
    columns: list[dict[str, Any]],
    scale: dict[str, str] | None = None,
) -> dict[str, Any]:
    name = kind.__name__
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "subresources": {"status": {}} | ({"scale": scale} if scale else {}),
        "additionalPrinterColumns": [
            _column("Ready", "string", _condition(ConditionType.READY, "status")),
            _column("Reason", "string", _condition(ConditionType.READY, "reason")),
            _column("Up-To-Date", "string", _condition(ConditionType.UP_TO_DATE, "reason")),
            *columns,
            _column("Age", "date", ".metadata.creationTimestamp"),
            _column("Progress", "string", _condition(ConditionType.PROGRESSING, "reason"), priority=1),
            _column("Message", "string", _condition(ConditionType.READY, "message"), priority=1),
        ],
        "schema": {"openAPIV3Schema": _schema(kind, rules)},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": name,
                "listKind": f"{name}List",
                "plural": plural,
                "singular": name.lower(),
                "shortNames": short_names,
            },
            "versions": [version],
        },
    }


def definitions() -> dict[str, dict[str, Any]]:
    """Return the CRDs by file name."""
    pool = _crd(
        resource_pool.ResourcePool,
        "resourcepools",
        ["rpool"],
        resource_pool.OBJECT_RULES,
        [
            _column("Nodes", "integer", ".status.nodes"),
            _column("Ready-Nodes", "integer", ".status.readyNodes"),
            _column("Accelerators", "string", ".status.accelerators"),
            _column("Drivers", "integer", ".status.drivers.running", priority=1),
            _column("Cluster", "string", ".status.clusterName", priority=1),
        ],
        scale={
            "specReplicasPath": ".spec.nodes",
            "statusReplicasPath": ".status.nodes",
            "labelSelectorPath": ".status.selector",
        },
    )
    group = _crd(
        worker_group.WorkerGroup,
        "workergroups",
        ["wg"],
        worker_group.OBJECT_RULES,
        [
            _column("Ranks", "integer", ".status.worldSize"),
            _column("Ready-Ranks", "integer", ".status.readyRanks"),
            _column("Restarts", "integer", ".status.restarts.count"),
            _column("Call", "string", ".status.ranks.oldestCall.method"),
            _column("For", "date", ".status.ranks.oldestCall.since"),
            _column("Incarnation", "integer", ".status.incarnation", priority=1),
            _column("Weights", "integer", ".status.ranks.weights[0].version", priority=1),
            _column("Class", "string", ".spec.worker.class", priority=1),
        ],
    )
    return {"resourcepools.yaml": pool, "workergroups.yaml": group}


def main(directories: list[str]) -> None:
    """Write the CRDs into each directory."""
    for directory in map(Path, directories):
        directory.mkdir(parents=True, exist_ok=True)
        for name, crd in definitions().items():
            text = "# Generated by `make generate` from crds/workergroups_api. Do not edit.\n"
            (directory / name).write_text(text + yaml.safe_dump(crd, sort_keys=False, width=110))


if __name__ == "__main__":
    main(sys.argv[1:])
