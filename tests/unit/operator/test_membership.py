"""Which cluster cares for whom, and whom an event wakes."""

from workergroups_operator.membership import ClusterKey, Membership

CLUSTERS = {("ns", "a"): ["a"], ("ns", "b"): ["shared"], ("ns", "c"): ["shared"], ("other", "a"): ["a"]}
POOLS = {("ns", "g"): [("b", "c")], ("ns", "lost"): [("gone", "a")]}
MEMBERSHIP = Membership(CLUSTERS, POOLS)


def test_pools_that_name_one_cluster_share_it():
    assert MEMBERSHIP.pools_of(ClusterKey("ns", "shared")) == ["b", "c"]
    assert MEMBERSHIP.pools_of(ClusterKey("ns", "a")) == ["a"]


def test_a_group_is_its_first_pools_clusters_to_care_for():
    assert MEMBERSHIP.groups_of(ClusterKey("ns", "shared")) == ["g"]


def test_a_group_whose_pool_does_not_exist_is_cared_for_under_the_pools_name():
    assert MEMBERSHIP.groups_of(ClusterKey("ns", "gone")) == ["lost"]


def test_a_pool_wakes_its_cluster_and_those_of_the_groups_that_name_it():
    woken = MEMBERSHIP.woken_by_pool("ns", "a", {})
    assert woken == {ClusterKey("ns", "a"), ClusterKey("ns", "gone")}
