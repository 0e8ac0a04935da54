"""Ranges of bundles are counted as if each bundle was."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from workergroups_operator.policy.shares import Shares

RANGE = st.tuples(st.integers(0, 30), st.integers(1, 12)).map(lambda each: (each[0], each[0] + each[1]))


@given(st.lists(RANGE, max_size=12), RANGE)
def test_ranges_are_counted_as_if_each_bundle_was(added, asked):
    shares, each = Shares(), Counter()
    for start, end in added:
        shares.add(start, end)
        each.update(range(start, end))
    assert shares.most(*asked) == max(each[bundle] for bundle in range(*asked))
