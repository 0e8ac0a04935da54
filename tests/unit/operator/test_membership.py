"""Which cluster cares for whom, and whom an event concerns."""

from collections import defaultdict

import pytest

from workergroups_api.references import cluster_of_pool, pools_of_group
from workergroups_operator.membership import ClusterKey, Membership


def membership(pools, groups):
    """From (namespace, pool) -> clusters and (namespace, group) -> tuples of pools, as kopf's indices hold them."""
    by_cluster, by_pool = defaultdict(list), defaultdict(list)
    for (namespace, pool), clusters in pools.items():
        for cluster in clusters:
            by_cluster[namespace, cluster].append(pool)
    for (namespace, group), named in groups.items():
        for names in named:
            for pool in names:
                by_pool[namespace, pool].append((group, names))
    return Membership(pools, dict(by_cluster), dict(by_pool))


MEMBERSHIP = membership(
    {("ns", "a"): ["a"], ("ns", "b"): ["shared"], ("ns", "c"): ["shared"], ("other", "a"): ["a"]},
    {("ns", "g"): [("b", "c")], ("ns", "lost"): [("gone", "a")]},
)


def test_pools_that_name_one_cluster_share_it():
    assert MEMBERSHIP.pools_of(ClusterKey("ns", "shared")) == ["b", "c"]
    assert MEMBERSHIP.pools_of(ClusterKey("ns", "a")) == ["a"]


def test_a_group_is_its_first_pools_clusters_to_care_for():
    assert MEMBERSHIP.groups_of(ClusterKey("ns", "shared")) == ["g"]


def test_a_group_whose_pool_does_not_exist_is_cared_for_under_the_pools_name():
    assert MEMBERSHIP.groups_of(ClusterKey("ns", "gone")) == ["lost"]


def test_a_pool_enqueues_its_cluster_and_those_of_the_groups_that_name_it():
    enqueued = MEMBERSHIP.enqueued_by_pool("ns", "a", {})
    assert enqueued == {ClusterKey("ns", "a"), ClusterKey("ns", "gone")}


def test_two_objects_of_one_name_are_both_looked_at():
    doubled = membership({("ns", "a"): ["old", "new"]}, {("ns", "g"): [("a",), ("b",)]})
    assert doubled.owning_clusters("ns", ("a",)) == {ClusterKey("ns", "old"), ClusterKey("ns", "new")}
    assert doubled.groups_of(ClusterKey("ns", "new")) == ["g"]


@pytest.mark.parametrize("name", [None, "", 7, True, [], {}, ["a"], "x" * 1_000_000])
def test_what_cannot_be_a_name_counts_as_none(name):
    assert pools_of_group("g", {"pools": [{"name": name}]}) == ("g",)
    assert pools_of_group("g", {"pools": [{"name": name}, {"name": "p"}]}) == ("p",)
    assert cluster_of_pool("p", {"clusterName": name}) == "p"


@pytest.mark.parametrize("pools", [None, "text", 7, {}, [], [None, "text", 7, {}, []]])
def test_a_group_whose_pools_are_no_list_of_names_is_on_the_pool_of_its_own_name(pools):
    assert pools_of_group("g", {"pools": pools}) == ("g",)
