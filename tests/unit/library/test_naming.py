from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workergroups.naming import PlacementName, RankName, latest_births

_part = st.text(alphabet="abcdefghijklmnopqrstuvwxyz0123456789-.", min_size=1, max_size=63)
_number = st.integers(min_value=0, max_value=10**6)


def test_a_rank_name_reads_as_a_path():
    assert str(RankName("trainer", "8f3a", 2, 3, 8)) == "trainer/8f3a/2/3-of-8"
    assert str(RankName("trainer", "8f3a", 2, 3, 8, birth=5)) == "trainer/8f3a/2/3-of-8/5"


def test_of_each_rank_the_latest_birth_counts():
    old, new, other = (RankName("g", "u", 1, rank, 2, birth) for rank, birth in ((0, 2), (0, 10), (1, 0)))
    assert latest_births([new, other, old]) == {0: new, 1: other}


@given(st.builds(RankName, _part, _part, _number, _number, _number, _number))
def test_parsing_a_name_gives_it_back(name):
    name = replace(name, world_size=name.rank + 1 + name.world_size)
    assert RankName.parse(str(name)) == name


@pytest.mark.parametrize(
    "text", ["", "trainer", "trainer/8f3a/2/3", "a/b/c/3-of-8", "a/b/1/3-of-8/x", "Ab3xYzActor_0:3", "a/b/1/-of-8"]
)
def test_other_actors_are_no_ranks(text):
    assert RankName.parse(text) is None


NINES = "9" * 5000


@pytest.mark.parametrize(
    "text",
    [
        f"g/u/1/0-of-{NINES}",
        f"g/u/1/0-of-1/{NINES}",
        "g/u/1/0-of-1/0",
        "g/u/1/0-of-1/",
        f"g/u/{NINES}/0-of-1",
        f"g/u/1/{NINES}-of-1",
        f"{NINES}/u/1/0-of-1",
        f"g/{NINES}/1/0-of-1",
        "g/u/\u0661/0-of-\u0661",
        "g/u/1/0-of-1\n",
        "g/u/1/1-of-1",
        "g/u/1/4242-of-2",
        "g/u\0/1/0-of-1",
        "g/\u202eu/1/0-of-1",
    ],
)
def test_names_that_kubernetes_would_not_give_are_none_of_ours(text):
    assert RankName.parse(text) is None


@given(st.builds(PlacementName, _part, _part, _number, _part))
def test_parsing_a_placement_groups_name_gives_it_back(name):
    assert PlacementName.parse(str(name)) == name


@pytest.mark.parametrize(
    "text", ["", "p/u/0", f"p/u/{NINES}/n", "p/u/\u0661/n", "p/u/1/", f"p/u/1/{NINES}", "p/u\0/1/n"]
)
def test_other_placement_groups_are_not_of_pools(text):
    assert PlacementName.parse(text) is None


@given(st.text())
def test_no_name_stops_who_reads_it(text):
    RankName.parse(text)
    PlacementName.parse(text)
