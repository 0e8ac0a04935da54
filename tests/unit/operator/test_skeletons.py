"""What kopf sees of an object: a few fields, whatever else its user wrote."""

import asyncio
import json
import tracemalloc
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workergroups_api.names import CLUSTER_LABEL
from workergroups_operator.skeletons import (
    EVENT,
    LIST,
    LONGEST_TEXT,
    MOST_POOLS,
    Each,
    LongStrings,
    Skeleton,
    Text,
    UnexpectedAnswer,
    read_lines,
)

SHAPE = {"a": Text, "b": {"c": Text}, "d": Each({"e": Text}), "f": Each(Text, at_most=2)}


def in_pieces(text, size):
    return (text[start : start + size] for start in range(0, len(text), size))


def skeleton(text, shape=SHAPE, size=7):
    found = Skeleton(shape)
    for piece in in_pieces(text, size):
        found.feed(piece)
    return found.end()


def lines(text, size=7):
    async def chunks():
        for piece in in_pieces(text, size):
            yield piece

    async def collect():
        return [event async for event in read_lines(chunks(), SHAPE)]

    return asyncio.run(collect())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b'{"a": "x", "z": "y"}', {"a": "x"}),
        (b'{"b": {"c": "x", "a": "y"}}', {"b": {"c": "x"}}),
        (b'{"d": [{"e": "x"}, {"e": 1}, 3, [{"e": "y"}], {}]}', {"d": [{"e": "x"}, {}, {}]}),
        (b'{"f": ["x", 1, "y", "z"]}', {"f": ["x", "y"]}),
        (b'{"a": {"a": "x"}, "b": ["c"], "d": {"e": "x"}}', {}),
        (b'{"a": null, "b": null, "d": null}', {}),
        (b'{"z": {"a": {"a": "y"}}, "a": "x"}', {"a": "x"}),
        (b'{"a": "\\ud83d\\ude00\\u0000"}', {"a": "\N{GRINNING FACE}\x00"}),
        (b'{"z": "\\ud83d", "a": "x"}', {"a": "x"}),
        (b'{"z": [1e999999, -0, 123456789012345678901234567890, 1.5], "a": "x"}', {"a": "x"}),
        (b'{"a": "' + b"x" * LONGEST_TEXT + b'"}', {"a": "x" * LONGEST_TEXT}),
        (b'{"a": "x' + b"x" * LONGEST_TEXT + b'"}', {}),
        (b'{"z": ' + b"[" * 100_000 + b"]" * 100_000 + b', "a": "x"}', {"a": "x"}),
        (b'{"z": ' + b'{"z":' * 100_000 + b"0" + b"}" * 100_000 + b', "a": "x"}', {"a": "x"}),
        (b"[]", None),
        (b"null", None),
        (b'"text"', None),
    ],
)
def test_only_what_the_shape_names_is_kept(text, expected):
    assert skeleton(text, size=4096) == expected


LONG = 200_000


@pytest.mark.parametrize(
    "long",
    [
        "x" * LONG,
        "<" * LONG,
        "\\" * LONG,
        '"' * LONG,
        'x"' * LONG,
        "\n" * LONG,
        "\u20ac" * LONG,
        "\N{GRINNING FACE}" * LONG,
        "x\N{GRINNING FACE}" * LONG,
    ],
    ids=["plain", "to escape", "backslashes", "quotes", "some quotes", "lines", "euros", "pairs", "odd pairs"],
)
@pytest.mark.parametrize("as_ascii", [True, False])
@pytest.mark.parametrize("size", [333, 4096, 32 * 1024])
def test_of_a_long_string_the_parser_gets_no_more_than_it_takes_to_ignore_it(long, as_ascii, size):
    text = json.dumps({"z": long, "d": [{long: 1, "e": long}], "a": "x"}, ensure_ascii=as_ascii).encode()
    text = text.replace(b"<", b"\\u003c")  # as Kubernetes writes it
    cutter = LongStrings()
    left = b"".join(map(cutter.cut, in_pieces(text, size)))
    assert len(left) < 3 * (13 * LONGEST_TEXT + 2 * size)
    assert all(len(each) > LONGEST_TEXT for each in (json.loads(left)["z"], json.loads(left)["d"][0]["e"]))
    assert skeleton(text, size=size) == {"a": "x", "d": [{}]}


@given(st.lists(st.text(st.sampled_from('\\"u0<x\n\u20ac\N{GRINNING FACE}'))), st.integers(1, 9), st.booleans())
def test_short_strings_are_passed_on_as_they_are_wherever_the_text_is_cut_into_pieces(texts, size, as_ascii):
    text = json.dumps(texts, ensure_ascii=as_ascii).encode()
    cutter = LongStrings()
    assert b"".join([*map(cutter.cut, in_pieces(text, size)), cutter.held]) == text
    assert cutter.held == b""


@pytest.mark.parametrize(
    "text",
    [
        b"null\xff",
        b'{"a": "x"}\\',
        b"",
        b"<html>",
        b'{"a": NaN}',
        b'{"a": "x"',
        b'{"a": "x"} {}',
        b'{"a": "\xff"}',
        b"]",
    ],
)
def test_what_is_not_json_is_refused(text):
    with pytest.raises(UnexpectedAnswer):
        skeleton(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from("abcdefz") | st.text(), inner),
)


def within(value, shape):
    """The same by recursion, on what json.loads built."""
    if shape is Text:
        return [value] if isinstance(value, str) else []
    if isinstance(shape, Each):
        items = [kept for item in value for kept in within(item, shape.shape)] if isinstance(value, list) else None
        return [] if items is None else [items[: shape.at_most]]
    if not isinstance(value, dict):
        return []
    return [{key: kept for key, inner in value.items() if key in shape for kept in within(inner, shape[key])}]


@settings(max_examples=50)
@given(value=JSON, size=st.integers(1, 50), ascii=st.booleans())
def test_any_json_is_read_as_json_loads_would(value, size, ascii):
    text = json.dumps(value, ensure_ascii=ascii).encode("utf-8", "surrogatepass" if ascii else "replace")
    expected = within(json.loads(text), SHAPE)
    assert skeleton(text, size=size) == (expected[0] if expected else None)


@settings(max_examples=50)
@given(values=st.lists(JSON, max_size=4), size=st.integers(1, 50))
def test_each_line_is_an_event_wherever_the_chunks_end(values, size):
    text = b"".join(json.dumps(value).encode() + b"\n" for value in values)
    assert lines(text, size) == [skeleton(json.dumps(value).encode()) for value in values]


@settings(max_examples=50)
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(text):
    with suppress(UnexpectedAnswer):
        lines(text)


def test_empty_lines_are_passed_over_and_a_last_line_needs_no_end():
    assert lines(b'\n\n{"a": "x"}\n\n{"a": "y"}') == [{"a": "x"}, {"a": "y"}]


def test_what_the_handlers_read_is_kept():
    metadata = {"namespace": "ns", "name": "n", "uid": "u", "resourceVersion": "1", "labels": {CLUSTER_LABEL: "c"}}
    group = {"apiVersion": "v", "kind": "K", "metadata": metadata, "spec": {"pools": [{"name": "p"}]}}
    pool = {"apiVersion": "v", "kind": "K", "metadata": metadata, "spec": {"clusterName": "c"}}
    lease = {"metadata": metadata, "spec": {"holderIdentity": "s", "renewTime": "t"}}
    items = [group, pool, lease]
    found = {"apiVersion": "v", "kind": "KList", "metadata": {"resourceVersion": "9", "continue": ""}, "items": items}
    assert skeleton(json.dumps(found).encode(), LIST) == found
    for item in items:
        event = {"type": "ADDED", "object": item}
        assert skeleton(json.dumps(event).encode(), EVENT) == event


@pytest.mark.parametrize(
    "filling", [b"{},", b"[],", b"1,", b'"x",', b'{"name":"x"},'], ids=["maps", "lists", "numbers", "texts", "pools"]
)
def test_memory_does_not_depend_on_what_users_write(filling):
    text = b'{"type":"ADDED","object":{"spec":{"pools":[' + filling * (1_400_000 // len(filling)) + b"0]}}}"
    tracemalloc.start()
    try:
        found = skeleton(text, EVENT, size=32 * 1024)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(found["object"]["spec"]["pools"]) <= MOST_POOLS
    assert peak < 200_000
