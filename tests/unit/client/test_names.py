"""Which pool or group a name means."""

import pytest

from tests.unit.client.fake_cluster import FakeCluster, group, pool
from workergroups_client.errors import ClientError, NotFoundError
from workergroups_client.objects.names import GROUP, POOL, find, find_all, none_here, pools_of, ray_cluster

BOTH = FakeCluster(pool("ppo", clusterName="rl"), group("ppo"), group("critic", pools=[{"name": "ppo"}]))


@pytest.mark.parametrize(
    ("name", "wanted", "found"),
    [
        ("ppo", (POOL, GROUP), "pool ppo"),
        ("ppo", (GROUP,), "group ppo"),
        ("critic", (POOL, GROUP), "group critic"),
        ("group/ppo", (POOL, GROUP), "group ppo"),
        ("wg/ppo", (POOL, GROUP), "group ppo"),
        ("ResourcePool/ppo", (POOL, GROUP), "pool ppo"),
    ],
)
def test_a_name_means_what_the_verb_wants_first_unless_it_says_the_kind(name, wanted, found):
    assert str(find(BOTH, name, *wanted)) == found


def test_an_empty_namespace_names_one_that_is_not():
    assert none_here(FakeCluster()) == (
        "no pools and no groups in namespace team; no other namespace has any: workergroups up -f FILE creates what "
        "FILE defines"
    )
    assert none_here(FakeCluster(group("ppo", namespace="lab"))) == (
        "no pools and no groups in namespace team; there are some in namespace lab: add -n lab"
    )


def test_a_pool_and_a_group_of_one_name_are_both_found_where_both_are_wanted():
    assert [str(target) for target in find_all(BOTH, "ppo")] == ["pool ppo", "group ppo"]


@pytest.mark.parametrize("name", ["ppo", "critic"])
def test_the_ray_cluster_of_a_pool_and_of_the_groups_on_it_is_the_one_that_the_pool_names(name):
    assert ray_cluster(BOTH, find(BOTH, f"group/{name}")) == ray_cluster(BOTH, find(BOTH, "pool/ppo")) == "rl"


def test_a_group_without_pools_is_on_the_pool_of_its_name():
    assert pools_of(find(BOTH, "group/ppo")) == ("ppo",)


@pytest.mark.parametrize(
    ("cluster", "said"),
    [
        (BOTH, "there is no pool or group pop in namespace team; did you mean ppo?"),
        (FakeCluster(pool("x"), group("y")), "there is no pool or group pop in namespace team; there are x, y"),
        (
            FakeCluster(pool("x"), group("pop", "lab")),
            "there is no pool or group pop in namespace team; there is x; one in namespace lab: add -n lab",
        ),
        (
            FakeCluster(),
            "there is no pool or group pop in namespace team, nor any other; no other namespace has one of this name: "
            "workergroups up -f FILE creates what FILE defines",
        ),
        (
            FakeCluster(pool("pop", namespace="lab")),
            "there is no pool or group pop in namespace team, nor any other; there is one in namespace lab: add -n lab",
        ),
    ],
)
def test_a_wrong_name_is_reported_with_what_there_is(cluster, said):
    with pytest.raises(NotFoundError) as told:
        find(cluster, "pop")
    assert str(told.value) == said


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("pool/ppo", "pool/ppo names a pool, but this needs a group: write group/NAME"),
        ("pod/ppo", "pod/ppo: write pool/NAME or group/NAME"),
    ],
)
def test_a_wrong_kind_is_refused(name, said):
    with pytest.raises(ClientError, match=said):
        find(BOTH, name, GROUP)


@pytest.mark.parametrize(
    "name", ["", "pool/", "group/..", "..", "a/b/c?watch=1", "pool/a b", "ppo#", "pool/\n", "ünicode"]
)
def test_what_would_name_another_object_in_a_path_is_no_name(name):
    with pytest.raises(ClientError, match=r"cannot be a name|write pool/NAME or group/NAME"):
        find(BOTH, name)
