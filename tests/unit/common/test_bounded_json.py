import json
import random
import tracemalloc

import pytest

from workergroups_common.bounded_json import Limits, RefusedJson, parse

LIMITS = Limits(size=2_000_000, depth=64, values=50_000)


def nested(levels: int, opener: str = "[", closer: str = "]", inside: str = "") -> bytes:
    return (opener * levels + inside + closer * levels).encode()


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        {},
        [],
        [[], {}, [[]]],
        {"a": [1, 2.5, -3, True, None, "é\N{GRINNING FACE}"]},
        {'quo"te': 'back\\slash\\\\"', "brackets in text": "[[{{,,", "a,": '","', "\\": "\\"},
        [["a]", '"]'], {"}": "{"}],
    ],
)
@pytest.mark.parametrize("ensure_ascii", [True, False])
def test_json_within_the_limits_is_read_as_the_standard_library_reads_it(value, ensure_ascii):
    assert parse(json.dumps(value, ensure_ascii=ensure_ascii).encode(), LIMITS) == value


def test_the_limits_themselves_are_allowed():
    assert parse(nested(64), LIMITS)
    assert len(parse(json.dumps([0] * 49_999).encode(), LIMITS)) == 49_999
    assert parse(b" " * 1_999_999 + b"1", LIMITS) == 1


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b" " * 2_000_000 + b"1", "2000001 bytes, and may have 2000000"),
        (nested(65), "more than 64 levels"),
        (nested(65, '{"a":', "}", "1"), "more than 64 levels"),
        (nested(900_000), "values"),
        (b"[" * 1_000, "not JSON"),
        (b"][", "not JSON"),
        (b"[" + b"{}," * 460_000 + b"{}]", "values, and may have 50000"),
        (json.dumps([0] * 50_001).encode(), "values"),
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b'"', "not JSON"),
        (b'"\\', "not JSON"),
        (b"]", "not JSON"),
        (b"[}", "not JSON"),
        (b"\xff\xfe1", "not JSON"),
        ("1".encode("utf-16"), "not JSON"),
        (b"NaN", "NaN is no number"),
        (b"[-Infinity]", "no number"),
        (b"1e999", "too large"),
        (b"9" * 1001, "1001 digits"),
        (b'{"a": -' + b"9" * 1_000_000 + b"}", "digits"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_everything_else_is_refused_with_a_sentence(data, said):
    with pytest.raises(RefusedJson, match=said):
        parse(data, LIMITS)


def test_marks_inside_strings_do_not_count():
    text = "[{,\\" * 30_000
    assert parse(json.dumps({"a": text, "b": [text]}).encode(), LIMITS) == {"a": text, "b": [text]}


@pytest.mark.parametrize("seed", range(200))
def test_any_bytes_are_read_or_refused(seed):
    chance = random.Random(seed)
    data = bytes(chance.choices(b'[]{},:"\\ \n01e.-anu\x00\xc3\xff', k=chance.randrange(1, 200)))
    try:
        expected = json.loads(data.decode())
    except ValueError:
        with pytest.raises(RefusedJson):
            parse(data, LIMITS)
    else:
        assert parse(data, LIMITS) == expected


@pytest.mark.parametrize(
    "data",
    [
        nested(700_000),
        b"[" + b"{}," * 460_000 + b"{}]",
        b"[" + b'"[",' * 350_000 + b"0]",
        b'["' + b"\\\\" * 700_000 + b'",0]',
    ],
    ids=["deep", "many", "strings", "escapes"],
)
def test_no_text_costs_much_memory(data):
    tracemalloc.start()
    with pytest.raises(RefusedJson):
        parse(data, Limits(size=2_000_000, depth=64, values=1))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 30_000_000
