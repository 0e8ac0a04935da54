"""The short forms in an agent's report."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workergroups_api.report import GroupReport, PoolReport, pods_digest, ranges


@pytest.mark.parametrize(
    ("numbers", "written"),
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
def test_ranges(numbers, written):
    assert ranges(numbers) == written


@given(st.sets(st.integers(min_value=0, max_value=2000)))
def test_ranges_name_exactly_the_numbers(numbers):
    read = set()
    for span in filter(None, ranges(numbers).split(",")):
        low, _, high = span.partition("-")
        read |= set(range(int(low), int(high or low) + 1))
    assert read == numbers


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
