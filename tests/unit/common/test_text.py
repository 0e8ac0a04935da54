"""What others wrote, on its way into a status or a manifest."""

import json
import unicodedata

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from workergroups_common.text import plain
from workergroups_kube.client import as_yaml

ODD = {
    "an emoji": "no \N{PILE OF POO} left",
    "a flag of two characters": "\U0001f1e9\U0001f1ea",
    "a line separator": "a\u2028b",
    "a paragraph separator": "a\u2029b",
    "a next-line control": "a\x85b",
    "a byte order mark": "\ufeffa",
    "no character": "a\ufffe\uffffb",
    "a NUL": "a\0b",
    "a DEL": "a\x7fb",
    "an escape sequence": "\x1b[31mred\x1b[0m",
    "a C1 control": "a\x9bb",
    "Windows line ends": "a\r\nb",
    "what looks like YAML": "a: [b, {c: 'd'}] # e\n---\n&f *g !h |",
    "what looks like an escape": "\\ud83d \\u2028 \\\\",
    "combining characters": "e\u0301\u200d",
}
LONE_SURROGATES = ["\ud83d", "\udca9", "a\ud83d b", "\udca9\ud83d"]
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=50), inner),
)


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_an_odd_text_is_applied_as_it_is(text):
    manifest = {"metadata": {"annotations": {text: text}}}
    written = as_yaml(manifest)
    assert yaml.safe_load(written) == manifest
    assert json.loads(written) == manifest
    assert written.encode().decode() == written


@pytest.mark.parametrize("text", LONE_SURROGATES)
def test_half_a_character_is_replaced(text):
    read = yaml.safe_load(as_yaml({"text": text}))["text"]
    assert read == "".join("\N{REPLACEMENT CHARACTER}" if "\ud800" <= c <= "\udfff" else c for c in text)
    assert as_yaml({"text": text}).encode()


@given(st.dictionaries(st.text(max_size=50), anything, max_size=5))
def test_any_manifest_is_the_same_after_a_round_trip(manifest):
    assert json.loads(as_yaml(manifest)) == manifest


@given(st.text())
def test_any_text_is_the_same_to_a_reader_of_yaml(text):
    assert yaml.safe_load(as_yaml({"text": text})) == {"text": text}


@pytest.mark.parametrize("text", [*ODD.values(), *LONE_SURROGATES])
def test_a_plain_text_is_one_line_of_printable_characters(text):
    line = plain(text, 100)
    assert line.splitlines() in ([line], [])
    assert not {unicodedata.category(c) for c in line} & {"Cc", "Cs", "Cn", "Zl", "Zp"}
    assert line.encode()


def test_a_plain_text_keeps_what_people_read():
    assert plain("Prüfung \N{PILE OF POO}: ошибка, 失败", 100) == "Prüfung \N{PILE OF POO}: ошибка, 失败"


def test_white_space_becomes_one_blank():
    assert plain(" Traceback\n\n  File\tx\r\n", 100) == "Traceback File x"


def test_what_is_no_character_is_shown_as_such():
    assert plain("a\0b\x1b[0m\ud83d\x7f", 100) == "a\ufffdb\ufffd[0m\ufffd\ufffd"


def test_no_text_reverses_the_text_after_it():
    assert plain("\u202enot\u2066 so", 100) == "\ufffdnot\ufffd so"
    assert (
        plain("مرحبا \N{WOMAN}\N{ZERO WIDTH JOINER}\N{ROCKET}", 100) == "مرحبا \N{WOMAN}\N{ZERO WIDTH JOINER}\N{ROCKET}"
    )


def test_a_long_text_loses_its_middle():
    short = plain("begin " + "x" * 1000 + " end", 40)
    assert len(short) == 40
    assert short.startswith("begin x")
    assert short.endswith("x end")
    assert " [...] " in short


@given(st.text(alphabet=st.sampled_from("ab \n\x00é"), min_size=20), st.integers(min_value=20, max_value=40))
def test_a_plain_text_stays_as_it_is(text, limit):
    """What is read from a status must equal what was written, or it would be written again and again."""
    assert plain(plain(text, limit), limit) == plain(text, limit)


@given(st.text(alphabet=st.characters()), st.integers(min_value=20, max_value=60))
def test_no_text_is_longer_than_its_limit(text, limit):
    assert len(plain(text, limit)) <= limit


@pytest.mark.parametrize("filling", ["x", " ", "\0", "\ud83d"])
def test_of_a_text_that_is_far_too_long_beginning_and_end_are_kept(filling):
    line = plain(f"begin {filling * 1_000_000} end", 100)
    assert len(line) <= 100
    assert line.startswith("begin ")
    assert line.endswith(" end")
    assert " [...] " in line
