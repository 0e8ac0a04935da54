"""The short forms in an agent's report."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workergroups_api.ranges import braces, expanded, numbers, ranges
from workergroups_api.report import GroupReport, PoolReport, pods_digest


@pytest.mark.parametrize(
    ("named", "written"),
    [
        ([], ""),
        ([0], "0"),
        ([0, 1], "0-1"),
        ([0, 1, 2, 5], "0-2,5"),
        ([5, 2, 0, 1], "0-2,5"),
        ([0, 2, 4], "0,2,4"),
        (range(511), "0-510"),
    ],
)
def test_ranges(named, written):
    assert ranges(named) == written


@given(st.sets(st.integers(min_value=0, max_value=2000)))
def test_ranges_name_exactly_the_numbers(named):
    assert list(numbers(ranges(named))) == sorted(named)


@pytest.mark.parametrize(
    ("text", "read"), [("0-1,x,5", [0, 1]), ("-3", []), ("1-", []), ("3-1", []), ("0,999999", [0]), ("\u0663", [])]
)
def test_what_is_no_range_ends_the_numbers(text, read):
    assert list(numbers(text)) == read


@pytest.mark.parametrize(
    ("names", "written"),
    [
        ([], ""),
        (["a-x"], "a-x"),
        (["a-x", "a-y"], "a-{x,y}"),
        (["a-y", "a-x"], "a-{y,x}"),
        (["b", "a"], "{b,a}"),
        (["a", "ab"], "a{,b}"),
    ],
)
def test_names_with_a_common_beginning_are_short_and_keep_their_order(names, written):
    assert braces(names) == written
    assert expanded(written) == names


def test_the_pods_of_the_largest_pool_fit_into_a_status():
    pods = [f"{'p' * 40}-12345678-worker-{number:05}" for number in range(512)]
    assert expanded(braces(pods)) == pods
    assert len(braces(pods)) < 4096


def test_half_of_the_largest_pool_fits_into_a_status():
    assert len(ranges(range(0, 512, 2))) < 1024


def test_a_digest_of_pods_knows_no_order():
    assert pods_digest(["a", "b"]) == pods_digest(iter(["b", "a"]))


@pytest.mark.parametrize("others", [[], ["a"], ["a", "c"], ["a", "b", "c"], ["ab"], ["a,b"]])
def test_other_pods_have_another_digest(others):
    assert pods_digest(others) != pods_digest(["a", "b"])


@pytest.mark.parametrize("report", [PoolReport, GroupReport])
def test_an_empty_report_claims_nothing(report):
    empty = report.model_validate({})
    assert empty.session is None
    assert not any(isinstance(value, int) and value for value in empty.to_json().values())


def test_words_of_a_later_agent_are_taken_as_they_are():
    report = GroupReport.model_validate({"state": "Hibernating", "failures": [], "mood": "good"})
    assert report.state == "Hibernating"
