from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workergroups.naming import RankName

_part = st.text(alphabet="abcdefghijklmnopqrstuvwxyz0123456789-.", min_size=1)
_number = st.integers(min_value=0, max_value=10**6)


def test_a_rank_name_reads_as_a_path():
    assert str(RankName("trainer", "8f3a", 2, 3, 8)) == "trainer/8f3a/2/3-of-8"


@given(st.builds(RankName, _part, _part, _number, _number, _number))
def test_parsing_a_name_gives_it_back(name):
    assert RankName.parse(str(name)) == name


@pytest.mark.parametrize(
    "text", ["", "trainer", "trainer/8f3a/2/3", "a/b/c/3-of-8", "a/b/1/3-of-8/x", "Ab3xYzActor_0:3", "a/b/1/-of-8"]
)
def test_other_actors_are_no_ranks(text):
    assert RankName.parse(text) is None
