"""docs/training.md answers each line of verl's guide once, in order."""

import re

import pytest

from tests.unit.docs.pages import REPOSITORY, tables

ROWS = [row for _, rows in tables((REPOSITORY / "docs" / "training.md").read_text()) for row in rows]
REFUSALS = {
    int(number): sentence
    for number, _, answer in ROWS
    for sentence in re.split(r"(?<=[.;])\s", answer)
    if "not offered" in sentence
}
# A reason is a clause of its own, or it is said that the answer is to come.
REASON = re.compile(r"not offered(?: yet\b|(?:: |, (?:since|because) )(?P<why>\w+(?:\W+\w+){2,}))")


def test_each_line_of_the_guide_has_its_row():
    assert [int(number) for number, _, _ in ROWS] == list(range(1, 87))


def test_there_are_refusals():
    assert len(REFUSALS) > 5


@pytest.mark.parametrize("number", REFUSALS)
def test_what_is_not_offered_says_why(number):
    found = REASON.search(REFUSALS[number])
    assert found, REFUSALS[number]
    for other in re.findall(r"row (\d+)", found["why"] or ""):
        # Another row's reason, which must be one, and not this row's again.
        why = REASON.search(REFUSALS[int(other)])
        assert why
        assert why["why"]
        assert int(other) != number


@pytest.mark.parametrize(
    "sentence",
    [
        "not offered",
        "not offered, and so on and so on",
        "not offered: no",
        "not offered, since",
        "not offered in this version",
    ],
)
def test_what_gives_no_reason_is_refused(sentence):
    assert not REASON.search(sentence)
