"""Which bundles groups sit on."""

import pytest

from tests.unit.operator.make import group, pool
from workergroups_api.conditions import Explanation
from workergroups_api.plan import PlannedBundles
from workergroups_operator.policy.bundles import assign_bundles


def bundles_of(group_, *pools, elsewhere=None):
    return assign_bundles([group_], pools, elsewhere or {})[group_.name]


def part(start, count, name="actors"):
    return {"name": name, "bundles": {"start": start, "count": count}}


def test_a_whole_pool():
    assert bundles_of(group(), pool()) == (PlannedBundles(pool="actors", start=0, count=4),)


def test_a_pool_that_reserves_nothing_has_no_bundles():
    why = bundles_of(group(), pool(reservation="None"))
    assert why.reason == "PoolNotReserved"
    assert "spec.pools[0]: pool actors has spec.reservation: None" in why.message


def test_a_part_of_a_pool_is_verls_split():
    assert bundles_of(group(pools=[part(1, 2)]), pool()) == (PlannedBundles(pool="actors", start=1, count=2),)


def test_several_pools_are_verls_merge():
    merged = bundles_of(group(pools=["b", "actors"]), pool(), pool("b", 1, 1))
    assert [(each.pool, each.count) for each in merged] == [("b", 1), ("actors", 4)]


def test_a_pool_may_appear_twice():
    twice = bundles_of(group(pools=[part(2, 2), part(0, 1)]), pool())
    assert [(each.start, each.count) for each in twice] == [(2, 2), (0, 1)]


@pytest.mark.parametrize(
    ("refs", "elsewhere", "reason", "words"),
    [
        (["missing"], {}, "PoolNotFound", "create it first"),
        (["far"], {"far": "other"}, "PoolsOnDifferentClusters", "pool far is on cluster other"),
        ([part(3, 2)], {}, "BundlesOutsidePool", "spec.pools[0].bundles ends at 5, but pool actors has 4 bundles"),
        ([part(0, 2), part(1, 2)], {}, "BundlesTakenTwice", "spec.pools[1] names bundles of pool actors"),
    ],
)
def test_who_cannot_sit_learns_which_field_and_the_way_out(refs, elsewhere, reason, words):
    refusal = bundles_of(group(pools=refs), pool(), elsewhere=elsewhere)
    assert isinstance(refusal, Explanation)
    assert refusal.reason == reason
    assert words in refusal.message


def test_a_bundle_takes_as_many_groups_as_may_colocate_and_the_first_keep_their_place():
    groups = [group("a"), group("b"), group("c")]
    assigned = assign_bundles(groups, [pool(maxColocateCount=2)], {})
    assert not isinstance(assigned["a"], Explanation)
    assert not isinstance(assigned["b"], Explanation)
    assert assigned["c"].reason == "PoolFull"


def test_groups_on_other_bundles_do_not_count():
    halves = [group(name, [part(start, 2)]) for name, start in (("a", 0), ("b", 2))]
    assigned = assign_bundles(halves, [pool(maxColocateCount=1)], {})
    assert not any(isinstance(bundles, Explanation) for bundles in assigned.values())
