"""The short forms in an agent's report."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workergroups_api.bounded_text import MAX_MESSAGE, MAX_PODS, MAX_RANGES, MAX_TERM
from workergroups_api.plan import MAX_BIRTHS
from workergroups_api.report import GroupReport, PoolReport, pods_digest
from workergroups_common.ranges import braces, contains, cut_braces, cut_ranges, expanded, numbers, ranges, without


@pytest.mark.parametrize(
    ("named", "written"),
    [
        ([], ""),
        ([0], "0"),
        ([0, 1], "0-1"),
        ([0, 1, 2, 5], "0-2,5"),
        ([5, 2, 0, 1], "0-2,5"),
        ([1, 1, 2, 1], "1-2"),
        ([0, 2, 4], "0,2,4"),
        (range(511), "0-510"),
    ],
)
def test_ranges(named, written):
    assert ranges(named) == written


@given(st.sets(st.integers(min_value=0, max_value=2000)))
def test_ranges_name_exactly_the_numbers(named):
    assert list(numbers(ranges(named), 10_000)) == sorted(named)


@pytest.mark.parametrize(
    ("text", "read"), [("0-1,x,5", [0, 1]), ("-3", []), ("1-", []), ("3-1", []), ("0,999999", [0]), ("\u0663", [])]
)
def test_what_is_no_range_ends_the_numbers(text, read):
    assert list(numbers(text, 100_000)) == read


@pytest.mark.parametrize("text", ["0-99999," * 1000, "5," * 1000, "9,8,7," * 1000, "0-3,2-5", "5,5"])
def test_nobody_can_make_ranges_name_a_number_twice_or_out_of_order(text):
    found = list(numbers(text, 100_000))
    assert found == sorted(set(found))


def test_numbers_that_cannot_exist_are_left_out():
    assert list(numbers("0-1,3-99999", 5)) == [0, 1, 3, 4]


SOME = st.sets(st.integers(min_value=0, max_value=60))


@given(SOME, SOME)
def test_ranges_without_numbers_are_the_ranges_of_the_others(named, left_out):
    assert without(ranges(named), left_out, 100) == (ranges(named - left_out), len(named & left_out))


@given(SOME, st.integers(min_value=0, max_value=60))
def test_ranges_contain_what_they_name(named, number):
    assert contains(ranges(named), number) is (number in named)


@given(SOME, st.integers(min_value=0, max_value=40))
def test_ranges_are_cut_between_numbers(named, limit):
    cut = cut_ranges(ranges(named), limit)
    kept = list(numbers(cut, 100))
    assert len(cut) <= limit
    assert kept == sorted(named)[: len(kept)]
    assert cut == ranges(kept)


@given(st.lists(st.text("abc", min_size=1), min_size=2, unique=True), st.integers(min_value=2, max_value=40))
def test_names_are_cut_between_names(names, limit):
    cut = cut_braces(braces(names), limit)
    assert len(cut) <= limit
    assert expanded(cut) == names[: len(expanded(cut))]


@pytest.mark.parametrize(
    ("limit", "cut"), [(12, "a-{xx,yy,zz}"), (11, "a-{xx,yy}"), (9, "a-{xx,yy}"), (8, "a-{xx}"), (7, "a-{xx}")]
)
def test_as_many_names_are_kept_as_have_room(limit, cut):
    assert cut_braces("a-{xx,yy,zz}", limit) == cut


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
    assert len(braces(pods)) < MAX_PODS


def test_half_of_the_largest_pool_fits_into_a_status():
    assert len(ranges(range(0, 512, 2))) < MAX_RANGES


def test_a_digest_of_pods_knows_no_order():
    assert pods_digest(["a", "b"]) == pods_digest(iter(["b", "a"]))


@pytest.mark.parametrize("others", [[], ["a"], ["a", "c"], ["a", "b", "c"], ["ab"], ["a,b"]])
def test_other_pods_have_another_digest(others):
    assert pods_digest(others) != pods_digest(["a", "b"])


@pytest.mark.parametrize(("report", "claimed"), [(PoolReport, {}), (GroupReport, {"state": "WaitingForPools"})])
def test_an_empty_report_claims_nothing(report, claimed):
    empty = report.model_validate({}).to_json()
    assert {key: value for key, value in empty.items() if value} == claimed


def test_a_report_that_says_too_much_is_cut_to_what_the_api_server_accepts():
    long = GroupReport.model_validate(
        {
            "state": "x" * 10_000,
            "failed": ranges(range(0, 20_000, 2)),
            "message": "why " * 10_000,
            "failures": [{"rank": 0, "reason": "y" * 10_000, "message": "m" * 10_000, "pod": "p" * 10_000}],
        }
    )
    assert (len(long.state), len(long.failures[0].pod or "")) == (MAX_TERM, MAX_TERM)
    assert all(MAX_MESSAGE - 10 < len(each) <= MAX_MESSAGE for each in (long.message or "", long.failures[0].message))
    failed = list(numbers(long.failed, 20_000))
    assert failed == list(range(0, 2 * len(failed), 2))
    assert len(failed) > MAX_BIRTHS


def test_words_of_a_later_agent_are_taken_as_they_are():
    report = GroupReport.model_validate({"state": "Hibernating", "failures": [], "mood": "good"})
    assert report.state == "Hibernating"
