"""docs/training.md answers each line of verl's guide once, in order, and names the tests that show the answers."""

import re

import pytest

from tests.unit.docs.pages import REPOSITORY, functions_in, tables

ROWS = [row for _, rows in tables((REPOSITORY / "docs" / "training.md").read_text()) for row in rows]
REFUSALS = {
    int(number): sentence
    for number, _, answer, _ in ROWS
    for sentence in re.split(r"(?<=[.;])\s", answer)
    if "not offered" in sentence
}
SHOWN_BY = {int(number): cell for number, _, _, cell in ROWS}
NO_TEST = re.compile(r"none: \w+(\W+\w+){3,}")
# A reason is a clause of its own, or it is said that the answer is to come.
REASON = re.compile(r"not offered(?: yet\b|(?:: |, (?:since|because) )(?P<why>\w+(?:\W+\w+){2,}))")


def test_each_line_of_the_guide_has_its_row():
    assert [int(number) for number, *_ in ROWS] == list(range(1, 89))


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


def is_shown(cell):
    """Whether a cell names tests that exist, or says why there is none."""
    names = [re.fullmatch(r"`([\w/]+/test_\w+\.py)::(test_\w+)`", name) for name in cell.split("<br>")]
    return bool(NO_TEST.fullmatch(cell)) or all(name and name[2] in functions_in(name[1]) for name in names)


@pytest.mark.parametrize("number", SHOWN_BY)
def test_each_row_names_its_tests_or_says_why_there_is_none(number):
    assert is_shown(SHOWN_BY[number]), SHOWN_BY[number]


def test_a_row_that_points_to_another_one_without_a_test_says_nothing():
    for cell in SHOWN_BY.values():
        if NO_TEST.fullmatch(cell):
            assert all(not NO_TEST.fullmatch(SHOWN_BY[int(row)]) for row in re.findall(r"\d+", cell))


@pytest.mark.parametrize(
    "cell",
    [
        "",
        "none",
        "none: not yet",
        "`unit/docs/test_training.py::test_that_is_not_there`",
        "`unit/docs/no_such_file.py::test_each_line_of_the_guide_has_its_row`",
        "`unit/docs/test_training.py::is_shown`",
        "a test",
    ],
)
def test_what_names_no_test_is_refused(cell):
    assert not is_shown(cell)
