"""Which bundles groups sit on."""

import pytest

from tests.unit.operator.make import group, pool
from workergroups_api.conditions import Explanation
from workergroups_api.plan import PlannedBundles
from workergroups_operator.policy.bundles import Assigned, assign_bundles
from workergroups_operator.policy.current_bundles import CurrentBundles
from workergroups_operator.policy.pool_size import PoolCapacity


def assigned_to(groups, pools, elsewhere=None, capacity=None, current=None):
    capacities = {each.name: capacity or PoolCapacity(each.spec.nodes, each.spec.nodes) for each in pools}
    found = assign_bundles(groups, pools, elsewhere or {}, capacities, current or {})
    return {name: each.bundles if isinstance(each, Assigned) else each.why for name, each in found.items()}


def bundles_of(group_, *pools, elsewhere=None):
    return assigned_to([group_], pools, elsewhere)[group_.name]


def planned(start, count, name="actors"):
    return PlannedBundles(pool=name, uid=f"uid-{name}", start=start, count=count)


def part(start, count, name="actors"):
    return {"name": name, "bundles": {"start": start, "count": count}}


def test_a_whole_pool():
    assert bundles_of(group(), pool()) == (planned(0, 4),)


def test_a_pool_that_reserves_nothing_has_no_bundles():
    why = bundles_of(group(), pool(reservation="None"))
    assert why.reason == "PoolNotReserved"
    assert "spec.pools[0]: pool actors has spec.reservation: None" in why.message


def test_a_part_of_a_pool_is_verls_split():
    assert bundles_of(group(pools=[part(1, 2)]), pool()) == (planned(1, 2),)


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
    assigned = assigned_to(groups, [pool(maxColocateCount=2)])
    assert not isinstance(assigned["a"], Explanation)
    assert not isinstance(assigned["b"], Explanation)
    assert assigned["c"].reason == "PoolFull"


def test_groups_on_other_bundles_do_not_count():
    halves = [group(name, [part(start, 2)]) for name, start in (("a", 0), ("b", 2))]
    assigned = assigned_to(halves, [pool(maxColocateCount=1)])
    assert not any(isinstance(bundles, Explanation) for bundles in assigned.values())


def test_a_group_may_have_as_many_ranks_as_the_largest_pool_has_bundles():
    pools = [pool("a", 512, 64), pool("b", 1, 1)]
    assert bundles_of(group(pools=["a"]), *pools) == (planned(0, 32768, "a"),)
    refusal = bundles_of(group(pools=["a", "b"]), *pools)
    assert refusal.reason == "GroupTooLarge"
    assert "the group would have 32769 ranks, and may have 32768" in refusal.message


HERE = (planned(0, 4),)
SHRINKING, GROWN = PoolCapacity(1, 2, reserved=1), PoolCapacity(3, 3, reserved=3)


@pytest.mark.parametrize(
    ("capacity", "current", "nodes"),
    [
        (PoolCapacity(2, 2), CurrentBundles(), 2),
        (GROWN, CurrentBundles(HERE, is_new=False, may_grow=True), 3),
        (GROWN, CurrentBundles(HERE, is_new=False, may_grow=False, may_shrink=False), 2),
        (PoolCapacity(3, 3, reserved=2), CurrentBundles(HERE, is_new=False, may_grow=True), 2),
        (PoolCapacity(3, 3, reserved=2), CurrentBundles(HERE, is_new=True), 3),
        (SHRINKING, CurrentBundles(HERE, is_new=False, may_grow=True), 1),
        (SHRINKING, CurrentBundles(HERE, is_new=False, may_grow=False, may_shrink=False), 2),
        (SHRINKING, CurrentBundles(HERE, is_new=False, may_grow=False, may_shrink=True), 1),
        (GROWN, CurrentBundles(HERE, is_new=False, may_grow=False, may_shrink=True), 2),
        (SHRINKING, CurrentBundles(HERE, is_new=True), 1),
        (PoolCapacity(1, 1, reserved=1), CurrentBundles(HERE, is_new=False, may_grow=False, may_shrink=False), 1),
        (
            PoolCapacity(3, 3),
            CurrentBundles((planned(0, 4).model_copy(update={"uid": "of an earlier pool"}),), is_new=False),
            3,
        ),
        (
            GROWN,
            CurrentBundles(
                (planned(0, 4).model_copy(update={"uid": None}),), is_new=False, may_grow=False, may_shrink=False
            ),
            2,
        ),
    ],
    ids=[
        "a new group gets all nodes",
        "nodes that are reserved are used when the ranks are recreated",
        "ranks that run stay on theirs",
        "nodes that are not reserved are not waited for",
        "but by a group that has nothing to lose",
        "recreated ranks leave the nodes that go",
        "ranks that run do not",
        "an incarnation without ranks does",
        "and does not grow",
        "what was never launched does",
        "nodes that are gone are gone",
        "another pool of the name is another pool",
        "the plan of an earlier version counts",
    ],
)
def test_how_many_nodes_of_a_whole_pool_a_group_gets(capacity, current, nodes):
    found = assigned_to([group()], [pool(nodes=capacity.wanted)], capacity=capacity, current={"trainer": current})
    assert found["trainer"] == (planned(0, 2 * nodes),)


@pytest.mark.parametrize(
    ("capacity", "current", "is_kept"),
    [
        (SHRINKING, CurrentBundles((planned(1, 2),), is_new=False), True),
        (SHRINKING, CurrentBundles((planned(1, 2),), is_new=True), False),
        (SHRINKING, CurrentBundles((planned(0, 2),), is_new=False), False),
        (PoolCapacity(1, 1, reserved=1), CurrentBundles((planned(1, 2),), is_new=False), False),
        (SHRINKING, CurrentBundles(), False),
    ],
    ids=["it has them", "never launched", "it has others", "the nodes are gone", "it is new"],
)
def test_bundles_of_nodes_that_go_are_only_for_groups_that_have_them(capacity, current, is_kept):
    found = assigned_to([group(pools=[part(1, 2)])], [pool(nodes=1)], capacity=capacity, current={"trainer": current})[
        "trainer"
    ]
    assert (found == (planned(1, 2),)) is is_kept
    assert is_kept or found.reason == "BundlesOutsidePool"
