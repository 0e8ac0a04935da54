"""Which bundles groups sit on."""

import pytest
from make import group, pool

from workergroups_api.plan import PlannedSeats
from workergroups_operator.policy.seating import Refusal, seat


def seats_of(group_, *pools, elsewhere=None):
    return seat([group_], pools, elsewhere or {})[group_.name]


def test_a_whole_pool():
    assert seats_of(group(), pool()) == (PlannedSeats(pool="actors", start=0, count=4),)


def test_a_part_of_a_pool_is_verls_split():
    part = {"name": "actors", "bundles": {"start": 1, "count": 2}}
    assert seats_of(group(pools=[part]), pool()) == (PlannedSeats(pool="actors", start=1, count=2),)


def test_several_pools_are_verls_merge():
    merged = seats_of(group(pools=["b", "actors"]), pool(), pool("b", (1,)))
    assert [(part.pool, part.count) for part in merged] == [("b", 1), ("actors", 4)]


@pytest.mark.parametrize(
    ("ref", "elsewhere", "reason", "words"),
    [
        ("missing", {}, "PoolNotFound", "create it first"),
        ("far", {"far": "other"}, "PoolsOnDifferentClusters", "pool far is on cluster other"),
        (
            {"name": "actors", "bundles": {"start": 3, "count": 2}},
            {},
            "BundlesOutsidePool",
            "spec.pools[0].bundles ends at 5, but pool actors has 4 bundles",
        ),
    ],
)
def test_who_cannot_sit_learns_which_field_and_the_way_out(ref, elsewhere, reason, words):
    refusal = seats_of(group(pools=[ref]), pool(), elsewhere=elsewhere)
    assert isinstance(refusal, Refusal)
    assert refusal.reason == reason
    assert words in refusal.message


def test_a_bundle_takes_as_many_groups_as_may_colocate_and_the_first_keep_their_place():
    groups = [group("a"), group("b"), group("c")]
    seating = seat(groups, [pool(maxColocateCount=2)], {})
    assert not isinstance(seating["a"], Refusal)
    assert not isinstance(seating["b"], Refusal)
    assert seating["c"].reason == "PoolFull"


def test_groups_on_other_bundles_do_not_count():
    half = [
        group(name, [{"name": "actors", "bundles": {"start": start, "count": 2}}])
        for name, start in (("a", 0), ("b", 2))
    ]
    seating = seat(half, [pool(maxColocateCount=1)], {})
    assert not any(isinstance(seats, Refusal) for seats in seating.values())
