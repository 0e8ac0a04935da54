"""The schema that the API server is given."""

import re
from collections.abc import Iterator

import pytest
import yaml

from workergroups_api.crd import _structural, definitions

FILES = ("resourcepools.yaml", "workergroups.yaml")
FORBIDDEN = ("$ref", "anyOf", "allOf", "title")
ANYTHING = {"x-kubernetes-preserve-unknown-fields": True}
MUTABLE = {
    "resourcepools.yaml": {
        "agent",
        "env",
        "envFrom",
        "head",
        "image",
        "imagePullSecrets",
        "nodes",
        "nodeSelector",
        "podTemplate",
        "priorityClassName",
        "ray",
        "progressDeadlineSeconds",
        "resources",
        "setup",
        "sharedMemory",
        "tolerations",
        "updateStrategy",
        "volumes",
        "onDeadline",
        "preflight",
        "suspend",
        "idle",
    },
    "workergroups.yaml": {
        "worker",
        "roles",
        "code",
        "env",
        "envFrom",
        "debug",
        "failurePolicy",
        "resize",
        "run",
        "activeDeadlineSeconds",
        "ttlSecondsAfterFinished",
        "suspend",
        "progressDeadlineSeconds",
    },
}

each_kind = pytest.mark.parametrize("file", FILES)


def version(file: str) -> dict:
    (only,) = definitions()[file]["spec"]["versions"]
    return only


def schema(file: str) -> dict:
    return version(file)["schema"]["openAPIV3Schema"]


def nodes(schema: dict) -> Iterator[dict]:
    """The schema and all that is inside it."""
    yield schema
    for value in schema.values():
        if isinstance(value, dict):
            yield from nodes(value)
        elif isinstance(value, list):
            for item in value:
                if isinstance(item, dict):
                    yield from nodes(item)


def fields(schema: dict, path: str = "") -> Iterator[tuple[str, dict]]:
    """Every field with its path; list items and map values are passed through."""
    for name, field in schema.get("properties", {}).items():
        yield f"{path}.{name}", field
        yield from fields(field, f"{path}.{name}")
    for inner in ("items", "additionalProperties"):
        if isinstance(schema.get(inner), dict):
            yield from fields(schema[inner], f"{path}[]")


@each_kind
def test_the_schema_is_structural(file):
    for node in nodes(schema(file)):
        assert not [key for key in FORBIDDEN if key in node and not isinstance(node[key], dict)]


def test_a_word_of_kubectl_means_one_kind():
    """With a category named as a kind, `kubectl delete workergroups --all` would delete the other kind's too."""
    names = [definition["spec"]["names"] for definition in definitions().values()]
    words = [word for kind in names for word in (kind["plural"], kind["singular"], *kind["shortNames"])]
    words += {category for kind in names for category in kind.get("categories", ())}
    assert len(words) == len(set(words))


@each_kind
def test_every_field_is_described(file):
    described = dict(fields(schema(file)))
    assert len(described) > 30
    # The API server describes metadata itself.
    assert [path for path, field in described.items() if not field.get("description") and path != ".metadata"] == []


@each_kind
def test_what_may_hold_anything_is_a_field_or_inside_one_that_has_a_type(file):
    """So that `kubectl explain` has a description for it."""
    free = [node for node in nodes(schema(file)) if node.get("x-kubernetes-preserve-unknown-fields")]
    inside = [
        field[inner]
        for _, field in fields(schema(file))
        for inner in ("items", "additionalProperties")
        if "type" in field and isinstance(field.get(inner), dict)
    ]
    assert free
    assert [node for node in free if "description" not in node and node not in inside] == []


@each_kind
def test_each_rule_says_which_field_and_what_to_do(file):
    rules = [rule for node in nodes(schema(file)) for rule in node.get("x-kubernetes-validations", ())]
    assert len(rules) >= 8
    for rule in rules:
        message = rule["message"]
        assert message.startswith(("spec.", "metadata.")), message
        assert ": " in message or " must " in message, message


def has_bound(field: dict) -> bool:
    """Whether nobody can put any amount of text or any number of items into a field, except for free JSON."""
    if field.get("x-kubernetes-int-or-string"):
        return "maxLength" in field
    match field.get("type"):
        case "string":
            return bool({"maxLength", "enum"} & field.keys()) or field.get("format") == "date-time"
        case "array":
            return "maxItems" in field
        case "object" if "additionalProperties" in field:
            return "maxProperties" in field
    return True


@each_kind
def test_every_text_list_and_map_has_a_bound(file):
    """Of free JSON, the operator measures the text before it parses it, see `spec_limits`."""
    inner = [(path, field) for part in ("spec", "status") for path, field in fields(schema(file)["properties"][part])]
    inner += [
        (f"{path}[]", field[inside])
        for path, field in inner
        for inside in ("items", "additionalProperties")
        if isinstance(field.get(inside), dict)
    ]
    assert len(inner) > 100
    assert [path for path, field in inner if not has_bound(field)] == []


@each_kind
def test_a_status_has_no_free_json(file):
    free = [node for node in nodes(schema(file)["properties"]["status"]) if node.items() >= ANYTHING.items()]
    assert free == []


@each_kind
def test_a_status_takes_words_of_later_versions(file):
    assert [path for path, field in fields(schema(file)["properties"]["status"]) if "enum" in field] == []


@pytest.mark.parametrize(
    "word",
    [
        "Off",
        "on",
        "Yes",
        "NO",
        "y",
        "N",
        "True",
        "false",
        "null",
        "Null",
        "~",
        "1",
        "0x1F",
        "1.5",
        ".inf",
        "1:30",
        "2026-11-24",
        "=",
        "<<",
    ],
)
def test_what_yaml_reads_as_something_else_is_no_enum_value(word):
    with pytest.raises(ValueError, match=f"reads the enum value '{re.escape(word)}' as something else"):
        _structural({"properties": {"debug": {"enum": ["Disabled", word]}}}, {})


@each_kind
def test_an_enum_value_needs_no_quotes(file):
    words = [word for node in nodes(schema(file)) for word in node.get("enum", ()) if isinstance(word, str)]
    assert words
    assert [word for word in words if yaml.safe_load(word) != word] == []


@each_kind
def test_what_cannot_be_changed_reports_it(file):
    spec = schema(file)["properties"]["spec"]
    rules = [rule for rule in spec["x-kubernetes-validations"] if " is immutable: delete the " in rule["message"]]
    immutable = {rule["fieldPath"].removeprefix(".") for rule in rules}
    assert immutable | MUTABLE[file] == set(spec["properties"])
    assert not immutable & MUTABLE[file]


@each_kind
def test_only_wide_output_has_the_message(file):
    columns = {column["name"]: column for column in version(file)["additionalPrinterColumns"]}
    assert columns["Message"]["priority"] == 1
    assert columns["Ready"]["jsonPath"] == '.status.conditions[?(@.type=="Ready")].status'


@pytest.mark.parametrize(
    ("file", "columns"),
    [
        ("resourcepools.yaml", ["Ready", "Reason", "Up-To-Date", "Nodes", "Ready-Nodes", "Accelerators", "Age"]),
        (
            "workergroups.yaml",
            ["Ready", "Reason", "Up-To-Date", "Ranks", "Ready-Ranks", "Restarts", "Call", "For", "Age"],
        ),
    ],
)
def test_narrow_output_counts_what_there_is(file, columns):
    narrow = [column for column in version(file)["additionalPrinterColumns"] if not column.get("priority")]
    assert [column["name"] for column in narrow] == columns
    known = {path for path, _ in fields(schema(file))}
    counted = [column["jsonPath"] for column in narrow if column["type"] == "integer"]
    assert counted
    assert set(counted) <= known


def test_keyword_arguments_are_a_map_of_anything_null_included():
    kwargs = dict(fields(schema("workergroups.yaml")))[".spec.worker.kwargs"]
    assert kwargs["type"] == "object"
    assert kwargs["additionalProperties"] == ANYTHING | {"nullable": True}


def test_arguments_are_a_list_of_anything():
    args = dict(fields(schema("workergroups.yaml")))[".spec.worker.args"]
    assert args["type"] == "array"
    assert args["items"].items() >= ANYTHING.items()


@each_kind
def test_nothing_else_may_be_null(file):
    nullable = [node for node in nodes(schema(file)) if node.get("nullable")]
    assert [node for node in nullable if not node.items() >= ANYTHING.items()] == []


def test_pools_are_written_as_a_whole():
    pools = dict(fields(schema("workergroups.yaml")))[".spec.pools"]
    assert pools["x-kubernetes-list-type"] == "atomic"
    assert "x-kubernetes-list-map-keys" not in pools


@each_kind
def test_items_of_a_statuss_lists_have_an_identity_or_one_writer(file):
    lists = [node for node in nodes(schema(file)["properties"]["status"]) if node.get("type") == "array"]
    assert lists
    kinds = [each["x-kubernetes-list-type"] for each in lists]
    assert set(kinds) <= {"map", "atomic"}
    assert [
        each
        for each in lists
        if (each["x-kubernetes-list-type"] == "map") == ("x-kubernetes-list-map-keys" not in each)
    ] == []
