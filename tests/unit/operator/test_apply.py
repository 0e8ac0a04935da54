"""When the operator writes, and when it must not."""

import pytest
from make import observed

from workergroups_operator.apply import covers, name_taken


@pytest.mark.parametrize(
    ("live", "wanted", "covered"),
    [
        ({"a": 1, "b": 2}, {"a": 1}, True),
        ({"a": 1}, {"a": 2}, False),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"a": [{"x": 1, "y": 2}]}, {"a": [{"x": 1}]}, True),
        ({"a": [1, 2]}, {"a": [1]}, False),
        ({}, {"a": {}}, True),
        ({}, {"a": []}, True),
        ({"a": [1]}, {"a": []}, False),
    ],
)
def test_what_others_added_is_no_difference(live, wanted, covered):
    assert covers(live, wanted) is covered


def test_an_object_of_somebody_else_is_never_taken_over():
    strangers = {("Secret", "actors-token"): {"metadata": {"labels": {"app": "mine"}}}}
    wanted = [{"kind": "Secret", "metadata": {"name": "actors-token"}}]
    failure = name_taken(observed(children=strangers), wanted)
    assert failure.reason == "NameTaken"
    assert "Secret actors-token exists" in failure.message
