"""Objects drawn from the schema of a CustomResourceDefinition: every field, bound, enum and pattern of it."""

import random
import re
import string
from functools import cache
from typing import Any

from tests.fuzz.values import any_json, text
from workergroups_api.crd import definitions
from workergroups_api.manifest import RESOURCE_POOL, WORKER_GROUP, Kind
from workergroups_api.plan import MAX_RANKS
from workergroups_common.ranges import ranges

Schema = dict[str, Any]

FILES = {RESOURCE_POOL: "resourcepools.yaml", WORKER_GROUP: "workergroups.yaml"}
# How often an optional field is set, and how often a value ignores its pattern.
OPTIONAL = 0.3
UNFIT = 0.01
_MATCHES = re.compile(r"^self\.matches\('(.*)'\)$")
_TRIES = 60
# Texts at their maxima are this long, so that a status of several lists at their maxima stays below etcd's limit.
_LONGEST = 2048
_RANGES = ranges(range(0, MAX_RANKS, 2))[:_LONGEST]
# Texts that match the patterns of labels, names, import paths, images, quantities and mount paths.
_SHAPES = (
    ("", string.ascii_lowercase, string.ascii_lowercase + string.digits + "-", "z"),
    ("a.", string.ascii_letters, string.ascii_letters + string.digits + "_", "Z"),
    ("example.com/", string.ascii_letters, string.ascii_letters + string.digits + "_.-", "9"),
    ("/", string.ascii_letters, string.printable.replace(":", ""), "z"),
    ("", string.digits, string.digits, "1"),
    ("0.", string.digits, string.digits, "Gi"),
    ("A", "_", string.ascii_letters + string.digits + "_", "_"),
)


@cache
def schema_of(kind: Kind, part: str) -> Schema:
    """Return the schema of `spec` or `status` of one of our kinds."""
    version = definitions()[FILES[kind]]["spec"]["versions"][0]
    found: Schema = version["schema"]["openAPIV3Schema"]["properties"][part]
    return found


def drawn(schema: Schema, choices: random.Random) -> Any:
    """Return a value that the schema accepts, apart from rules between fields; rarely one that it rejects."""
    if schema.get("nullable") and choices.random() < 0.1:
        return None
    if "enum" in schema:
        return choices.choice(schema["enum"])
    if schema.get("x-kubernetes-int-or-string"):
        return choices.choice((choices.randint(0, 64), _fitting(schema, choices)))
    match schema.get("type"):
        case "object":
            return _object(schema, choices)
        case "array":
            return _array(schema, choices)
        case "string":
            return _fitting(schema, choices)
        case "integer" | "number":
            return _number(schema, choices)
        case "boolean":
            return choices.random() < 0.5
    return any_json(choices)


def _object(schema: Schema, choices: random.Random) -> dict[str, Any]:
    required = schema.get("required", ())
    result = {
        name: drawn(field, choices)
        for name, field in schema.get("properties", {}).items()
        if name in required or choices.random() < OPTIONAL
    }
    if isinstance(extra := schema.get("additionalProperties"), dict):
        # The keys of maps follow CEL rules that only labels have.
        result |= {_shaped(choices): drawn(extra, choices) for _ in range(_count(schema, "Properties", choices))}
    elif schema.get("x-kubernetes-preserve-unknown-fields") and choices.random() < OPTIONAL:
        result[text(choices, 60)] = any_json(choices)
    return result


def _array(schema: Schema, choices: random.Random) -> list[Any]:
    items = [drawn(schema["items"], choices) for _ in range(_count(schema, "Items", choices))]
    keys = schema.get("x-kubernetes-list-map-keys")
    if not keys or choices.random() < UNFIT:
        return items
    return list({str([item.get(key) for key in keys]): item for item in items}.values())


def most(schema: Schema, choices: random.Random) -> Any:
    """Return a value that has every field, and of each list, map, text and number the most that the schema accepts."""
    match schema.get("type"):
        case "object":
            result = {name: most(field, choices) for name, field in schema.get("properties", {}).items()}
            if isinstance(extra := schema.get("additionalProperties"), dict):
                result |= {str(key): most(extra, choices) for key in range(schema.get("maxProperties", 64))}
            return result
        case "array":
            keys = schema.get("x-kubernetes-list-map-keys", ())
            items = [most(schema["items"], choices) for _ in range(schema.get("maxItems", 64))]
            for number, item in enumerate(items if keys else ()):
                item |= {key: number if isinstance(item[key], int) else f"{number}{item[key]}"[:60] for key in keys}
            return items
        case "integer" | "number":
            return schema.get("maximum", choices.choice((MAX_RANKS, 2**31 - 1)))
        case "boolean":
            return True
    if schema.get("format") == "date-time":
        return _fitting(schema, choices)
    longest = min(schema.get("maxLength", _LONGEST), _LONGEST)
    return choices.choice((_RANGES, "x" * longest, "<" * longest, "\u20ac" * longest))[:longest]


def _count(schema: Schema, what: str, choices: random.Random) -> int:
    most = schema.get(f"max{what}", 64)
    return min(int(most), choices.choice((0, 1, 1, 2, 3, 3, most if choices.random() < 0.2 else 4)))


def _number(schema: Schema, choices: random.Random) -> int:
    lowest, highest = schema.get("minimum", -(2**31)), schema.get("maximum", 2**31)
    if choices.random() < UNFIT:
        return int(choices.choice((lowest - 1, highest + 1, 2**63 - 1)))
    return int(choices.choice((lowest, lowest, min(lowest + 1, highest), highest, choices.randint(lowest, highest))))


def _fitting(schema: Schema, choices: random.Random) -> str:
    """Return a text of the right length that its patterns match."""
    longest = schema.get("maxLength", 300)
    shortest = schema.get("minLength", 0)
    patterns = [schema["pattern"]] if "pattern" in schema else []
    rules = [_MATCHES.match(rule["rule"]) for rule in schema.get("x-kubernetes-validations", ())]
    patterns += [rule[1].replace("\\\\", "\\") for rule in rules if rule]
    if schema.get("format") == "date-time":
        return choices.choice(("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2026-11-23T00:00:00Z"))
    for _ in range(0 if choices.random() < UNFIT else _TRIES):
        candidate = _shaped(choices, longest) if patterns else text(choices, longest)
        if shortest <= len(candidate) <= longest and all(re.search(pattern, candidate) for pattern in patterns):
            return candidate
    return text(choices, longest)


def _shaped(choices: random.Random, longest: int = 63) -> str:
    start, first, middle, end = choices.choice(_SHAPES)
    length = choices.choice((0, 1, 5, 10, max(0, longest - len(start) - len(end) - 1)))
    return start + choices.choice(first) + "".join(choices.choices(middle, k=length)) + (end if length else "")
