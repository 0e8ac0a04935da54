"""A page for each kind, from its CustomResourceDefinition: each field with type, default, limits and description."""

from collections.abc import Iterator
from typing import Any

from workergroups_api.crd import definitions
from workergroups_api.vocabulary import GROUP_CONDITIONS, POOL_CONDITIONS, ConditionType

from .markdown import code, plain, table

CONDITIONS: dict[str, tuple[ConditionType, ...]] = {"ResourcePool": POOL_CONDITIONS, "WorkerGroup": GROUP_CONDITIONS}
LIMITS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "minProperties": "at least {} keys",
    "maxProperties": "at most {} keys",
    "pattern": "matches {}",
}
"""Keywords of JSON schema, as a reader wants them."""
Schema = dict[str, Any]

# The page that explains a kind.
_GUIDES = {"ResourcePool": "Pools", "WorkerGroup": "Groups"}


def pages() -> dict[str, str]:
    """The pages by their names."""
    return {f"{each['spec']['names']['singular']}.md": _page(each) for each in definitions().values()}


def _page(definition: Schema) -> str:
    kind = definition["spec"]["names"]["kind"]
    (version,) = definition["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    return "\n\n".join(
        [
            f"# {kind}: every field",
            f"Made from the CustomResourceDefinition by `make generate`; "
            f"`kubectl explain {kind.lower()}.spec` prints the same. "
            f"[{_GUIDES[kind]}](../{_GUIDES[kind].lower()}.md) explains how the fields work together.",
            plain(schema["description"]),
            *_part("spec", schema["properties"]["spec"]),
            *_part("status", schema["properties"]["status"]),
            "## Conditions",
            ", ".join(code(str(condition)) for condition in CONDITIONS[kind])
            + ". [Conditions and reasons](../conditions.md#conditions-and-reasons) has the reasons of each.",
            "## Columns of `kubectl get`",
            table(
                ("column", "from", "shown"),
                (
                    (each["name"], code(each["jsonPath"]), "`--output=wide`" if each.get("priority") else "always")
                    for each in version["additionalPrinterColumns"]
                ),
            ),
        ]
    )


def _part(name: str, schema: Schema) -> Iterator[str]:
    """A section for `spec` or `status`, and one for each object in it."""
    yield f"## `{name}`"
    yield from _own(name, schema)
    for field, below in _properties(schema).items():
        if _properties(below):
            yield f"### `{name}.{field}`"
            yield plain(below.get("description", ""))
            yield from _own(f"{name}.{field}", below)


def _own(name: str, schema: Schema) -> Iterator[str]:
    deep = name.count(".") > 0
    yield table(("field and type", "description, default and limits"), _rows(schema, "", deep=deep))
    rules = [
        f"- {plain(rule.get('message', code(rule['rule'])))}" for rule in schema.get("x-kubernetes-validations", ())
    ]
    if rules:
        yield "The API server also checks:"
        yield "\n".join(rules)


def _rows(schema: Schema, above: str, *, deep: bool) -> Iterator[tuple[str, ...]]:
    required = _object(schema).get("required", ())
    for name, field in _properties(schema).items():
        path = f"{above}{name}"
        said = (plain(field.get("description", "")), _limits(field, is_required=name in required, has_section=not deep))
        yield f"{code(path)}<br>{_type(field)}", "<br>".join(filter(None, said))
        if deep:
            yield from _rows(field, f"{path}{_below(field)}", deep=True)


def _below(field: Schema) -> str:
    if "items" in field:
        return "[]."
    return ".KEY." if "additionalProperties" in field else "."


def _object(field: Schema) -> Schema:
    """The object that a field is, or that its items or values are."""
    values = field.get("items") or field.get("additionalProperties")
    return values if isinstance(values, dict) else field


def _properties(field: Schema) -> dict[str, Schema]:
    found: dict[str, Schema] = _object(field).get("properties", {})
    return found


def _type(field: Schema) -> str:
    if field.get("x-kubernetes-int-or-string"):
        return "integer or string"
    if "items" in field:
        return f"list of {_type(field['items'])}"
    if isinstance(field.get("additionalProperties"), dict):
        return f"map of {_type(field['additionalProperties'])}"
    if "enum" in field:
        return " or ".join(code(word) for word in field["enum"])
    kind = str(field.get("type", "any"))
    return f"{kind} ({field['format']})" if "format" in field else kind


def _limits(field: Schema, *, is_required: bool, has_section: bool) -> str:
    """What a value must keep to; the rules of an object that has its own section stand there."""
    said = ["required"] if is_required else []
    said += [f"default {code(field['default'])}"] if "default" in field else []
    said += [text.format(code(field[key])) for key, text in LIMITS.items() if key in field]
    if not (has_section and _properties(field)):
        said += [plain(rule["message"]) for rule in field.get("x-kubernetes-validations", ()) if "message" in rule]
    text = "; ".join(said)
    return text[:1].upper() + text[1:] + "." if text else ""
