"""What the agent does not vouch for arrives at the operator by the Lease, whatever else is written there."""

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workergroups_api.names import DOUBTS_ANNOTATION
from workergroups_api.vouching import EVERY, MAX_ANNOTATION, MAX_OBJECTS, doubt, from_annotation, to_annotation
from workergroups_operator.skeletons import OBJECT, skeleton_of


def lease_with(annotation):
    return {"metadata": {"name": "c-agent", "annotations": {DOUBTS_ANNOTATION: annotation}}}


def test_nothing_in_doubt_is_no_annotation():
    assert to_annotation({}) is None
    assert from_annotation(None) == {}


@given(st.dictionaries(st.uuids().map(str), st.text(max_size=1000), min_size=1, max_size=MAX_OBJECTS))
def test_what_is_written_is_read(doubts):
    annotation = to_annotation(doubts)
    assert from_annotation(annotation).keys() == doubts.keys()
    assert len(annotation) <= MAX_ANNOTATION
    read = asyncio.run(skeleton_of(json.dumps(lease_with(annotation)).encode(), OBJECT))
    assert read == lease_with(annotation), "the operator's watch tells it"


def test_of_too_many_objects_none_is_vouched_for():
    doubts = {f"uid-{number}": "403: no" for number in range(MAX_OBJECTS + 1)}
    found = from_annotation(to_annotation(doubts))
    assert found.keys() == {EVERY}
    assert "403: no" in doubt("another", found)


@pytest.mark.parametrize("odd", ["", "[", "[]", "7", "[" * 10_000, '{"a": ' * 10_000, "x" * 100_000, "\ud800", 7])
def test_what_cannot_be_read_vouches_for_none(odd):
    assert doubt("u", from_annotation(odd)) is not None


@given(st.text())
def test_any_text_is_read_or_vouches_for_none(text):
    assert EVERY in from_annotation(text) or isinstance(json.loads(text), dict)
