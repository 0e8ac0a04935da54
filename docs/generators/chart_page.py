"""The chart's README, from `values.yaml` and `rbac.yaml` with their comments, and from `values.schema.json`."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from .markdown import code, plain, table

# A rule of the operator's role, with the comment above it.
_RULE = re.compile(
    r"(?P<about>(?: *#.*\n)*)"
    r" *- apiGroups: \[(?P<group>.*)\]\n *resources: \[(?P<kinds>.*)\]\n *verbs: \[(?P<verbs>.*)\]\n"
)


def page(chart: Path) -> str:
    """The whole page."""
    about = yaml.safe_load((chart / "Chart.yaml").read_text())
    schema = json.loads((chart / "values.schema.json").read_text())
    text = (chart / "values.yaml").read_text()
    rules = (chart / "templates" / "rbac.yaml").read_text()
    tree = yaml.compose(text)
    assert isinstance(tree, yaml.MappingNode)
    return "\n\n".join(
        [
            f"# The chart {about['name']}",
            plain(about["description"]),
            "Made from `values.yaml` and `values.schema.json` by `make generate`. "
            "[How to install it](../../docs/install.md#the-chart).",
            "## Values",
            table(("value", "type", "default", "description"), _rows(tree, "", schema, schema, text.splitlines())),
            "## What the operator may do",
            "Made from `templates/rbac.yaml`. With the value `namespaces`, it has these rights in those only, and "
            "those on `nodes` and `customresourcedefinitions` nowhere. In its own namespace, it also has "
            "`get`, `patch` and `create` for the Lease that says which of its pods serves.",
            table(("API group", "resources", "verbs", "why"), _rights(rules)),
        ]
    )


def _rights(template: str) -> Iterator[tuple[str, ...]]:
    """Each rule; one without a comment has the reason of the one above."""
    for rule in _RULE.finditer(template):
        about = " ".join(re.findall(r"# ?(.*)", rule["about"])) or "as above"
        group = rule["group"].strip('"') or "core"
        yield group, code(rule["kinds"]), code(rule["verbs"]), plain(about)


def _rows(
    node: yaml.MappingNode, above: str, schema: dict[str, Any], root: dict[str, Any], lines: list[str]
) -> Iterator[tuple[str, ...]]:
    """Each value that is not a section of others; the schema says which keys a section has."""
    for key, value in node.value:
        below = _resolved(schema.get("properties", {}).get(key.value, {}), root)
        path = f"{above}{key.value}"
        about = _comment(lines, key.start_mark.line)
        if isinstance(value, yaml.MappingNode) and value.value and not value.flow_style:
            if about:
                yield f"**{code(path)}**", "", "", plain(about)
            yield from _rows(value, f"{path}.", below, root, lines)
        else:
            yield code(path), _type(below), code(json.dumps(_plain_value(value))), plain(about)


def _plain_value(node: yaml.Node) -> Any:
    return yaml.safe_load(yaml.serialize(node))


def _comment(lines: list[str], line: int) -> str:
    """The comment right above a line, or an empty text."""
    found: list[str] = []
    while line and lines[line - 1].lstrip().startswith("#"):
        line -= 1
        found.insert(0, lines[line].lstrip().removeprefix("#").strip())
    return " ".join(found)


def _resolved(schema: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = root["definitions"][schema["$ref"].rsplit("/", 1)[1]] if "$ref" in schema else schema
    return found


def _type(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return " or ".join(code(str(word)) for word in schema["enum"])
    kind = schema.get("type", "any")
    return kind if isinstance(kind, str) else " or ".join(kind)
