import pytest

from tests.unit.operator.make import child, observed, pool
from workergroups_operator.observed import node_group_of
from workergroups_operator.policy.refused_pools import over_budget


def sized(name, kilobytes):
    return pool(name, env=[{"name": f"A{n}", "value": "x" * 4_000} for n in range(kilobytes // 4)])


def refused(*pools, live=()):
    spec = {"workerGroupSpecs": [{"groupName": node_group_of(each)} for each in live]}
    seen = observed(pools=pools, children=child("RayCluster", "actors", spec=spec) if live else {})
    found = over_budget(seen)
    return [each.name for each in pools if node_group_of(each) in found]


@pytest.mark.parametrize(
    ("kilobytes", "without"),
    [
        ((1, 1, 1), []),
        ((1, 800, 400), []),
        ((1, 800, 800), ["p2"]),
        ((1, 800, 800, 300), ["p2"]),
        ((800, 1), ["p0"]),
    ],
)
def test_the_oldest_that_fit_are_in_the_cluster(kilobytes, without):
    assert refused(*(sized(f"p{number}", size) for number, size in enumerate(kilobytes))) == without


def test_a_pool_in_the_cluster_keeps_its_place_though_an_older_one_changes():
    small, older, younger = sized("p0", 1), sized("p1", 800), sized("p2", 800)
    assert refused(small, older, younger, live=(small, younger)) == ["p1"]


def test_a_set_up_script_counts_with_what_its_container_copies():
    script = {"setup": {"script": "$" * 16_000}}
    large = [{"name": f"A{n}", "value": "x" * 4_000} for n in range(100)]
    assert refused(pool("p0", env=large), pool("p1")) == []
    assert refused(pool("p0", env=large, **script), pool("p1")) == ["p0"]
    scripts = [pool(f"p{number}", **script) for number in range(40)]
    assert refused(*scripts) == [each.name for each in scripts[30:]]
