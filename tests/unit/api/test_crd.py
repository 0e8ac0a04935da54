"""The schema that the API server is given."""

import pytest

from workergroups.single_controller.ray.rank_process import PROTECTED_ENV as PROTECTED_BY_THE_LIBRARY
from workergroups_api.crd import definitions
from workergroups_api.worker_group import PROTECTED_ENV

FORBIDDEN = ("$ref", "anyOf", "allOf", "title", "nullable")


def nodes(schema):
    yield schema
    for value in schema.values():
        if isinstance(value, dict):
            yield from nodes(value)
        elif isinstance(value, list):
            for item in value:
                if isinstance(item, dict):
                    yield from nodes(item)


@pytest.mark.parametrize("name", ["resourcepools.yaml", "workergroups.yaml"])
def test_the_schema_is_structural(name):
    schema = definitions()[name]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for node in nodes(schema):
        assert not [key for key in FORBIDDEN if key in node and not isinstance(node[key], dict)]


@pytest.mark.parametrize("name", ["resourcepools.yaml", "workergroups.yaml"])
def test_each_rule_says_which_field_and_what_to_do(name):
    schema = definitions()[name]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    rules = [rule for node in nodes(schema) for rule in node.get("x-kubernetes-validations", ())]
    assert len(rules) >= 10
    for rule in rules:
        assert rule["message"].startswith(("spec.", "metadata.")), rule


def test_admission_and_library_protect_the_same_variables():
    assert set(PROTECTED_ENV) == PROTECTED_BY_THE_LIBRARY
