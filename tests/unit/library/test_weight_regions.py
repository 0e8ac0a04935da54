"""Boxes within tensors: which elements two of them share, which one lacks, and where they are in memory."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from workergroups.weights.regions import Region, cover, run_length, run_offsets, span, strides

SHAPES = st.lists(st.integers(0, 5), max_size=4).map(tuple)


@st.composite
def within(draw, shape):
    starts = [draw(st.integers(0, length)) for length in shape]
    return Region(
        tuple(starts), tuple(draw(st.integers(0, length - start)) for start, length in zip(starts, shape, strict=True))
    )


@st.composite
def boxes(draw, count):
    shape = draw(SHAPES)
    return [draw(within(shape)) for _ in range(count)]


def indices(region):
    return set(
        itertools.product(*(range(start, start + size) for start, size in zip(region.start, region.size, strict=True)))
    )


@given(boxes(2))
def test_what_two_boxes_share_and_what_one_lacks(pair):
    one, two = pair
    common = one.common(two)
    assert (indices(common) if common else set()) == indices(one) & indices(two)
    rest = one.without(two)
    assert sorted(index for box in rest for index in indices(box)) == sorted(indices(one) - indices(two))


@given(boxes(4))
def test_each_element_is_taken_once_or_missing(drawn):
    wanted, *holders = drawn
    taken, missing = cover(wanted, holders)
    parts = [(at, index) for at, box in taken for index in indices(box)]
    assert all(index in indices(holders[at]) for at, index in parts)
    lost = [index for box in missing for index in indices(box)]
    assert sorted([index for _, index in parts] + lost) == sorted(indices(wanted))
    assert not set(lost) & {index for holder in holders for index in indices(holder)}


@st.composite
def boxes_in_holders(draw):
    shape = draw(st.lists(st.integers(1, 5), max_size=4).map(tuple))
    one, two = draw(within(shape)), draw(within(shape))
    common = one.common(two)
    return (one, two, draw(st.just(common))) if common else (Region.whole(shape),) * 3


@given(boxes_in_holders())
def test_runs_are_where_the_elements_are(drawn):
    one, two, box = drawn
    length = run_length(box, one, two)

    def elements(holder):
        order = sorted(indices(holder))  # as they are in memory
        return [order[start + at] for start in run_offsets(box, length, holder) for at in range(length)]

    assert elements(one) == elements(two) == sorted(indices(box))


@given(boxes_in_holders())
def test_a_box_with_its_gaps_is_no_longer_than_needed(drawn):
    holder, _, box = drawn
    first, count = span(box, holder)
    order = sorted(indices(holder))
    assert {order[first], order[first + count - 1]} <= indices(box)
    assert indices(box) <= set(order[first : first + count])


def test_strides_are_those_of_a_contiguous_array():
    assert strides((2, 3, 4)) == (12, 4, 1)
    assert strides(()) == ()
