"""A cluster has limits, and what a turn of the largest one costs is no product of its sizes."""

import sys
from collections import Counter

from tests.unit.operator.make import SETTINGS, TIMINGS, group, metadata, observed, pod, pool, statuses
from workergroups_api.plan import MAX_NODE_PROCESSES, MAX_POOL_NODES
from workergroups_operator.isolation import pure_steps
from workergroups_operator.observed import node_group_of
from workergroups_operator.policy.cluster_limits import MAX_GROUPS, MAX_POOLS, within_limits

STEPS = pure_steps(SETTINGS, TIMINGS)


def reasons(seen):
    return {update.metadata["name"]: (update.ready.reason, update.ready.message) for update in statuses(seen).updates}


def test_the_youngest_beyond_a_limit_say_so_and_the_others_are_served():
    pools = tuple(pool(f"p{number}", suspend=True) for number in range(MAX_POOLS + 1))
    groups = tuple(group(f"g{number}", ["p0"]) for number in range(MAX_GROUPS + 2))
    seen = within_limits(observed(pools=pools, groups=groups, environments={"g0": {}, "g1001": {}}))
    found = reasons(seen)
    too_many = sorted(name for name, (reason, _) in found.items() if reason == "ClusterTooLarge")
    assert too_many == ["g1000", "g1001", f"p{MAX_POOLS}"]
    assert "a cluster may have 1000 WorkerGroups" in found["g1001"][1]
    assert "use another spec.clusterName" in found[f"p{MAX_POOLS}"][1]
    assert len(found) == len(pools) + len(groups)
    assert seen.environments == {"g0": {}}


def test_a_cluster_within_the_limits_is_as_it_is():
    seen = observed(pools=(pool(),), groups=(group(),))
    assert within_limits(seen) is seen


def steps_of(pools=4, nodes=2, processes=1, groups=4, pods=False, **more):
    """How many lines and calls of Python the pure steps take."""
    made = tuple(pool(f"p{number}", nodes, processes, maxColocateCount=100, **more) for number in range(pools))
    parts = [{"name": each.name, "bundles": {"start": 0, "count": nodes * processes}} for each in made[:16]]
    existing = [pod("head")] + [node_pod(each, number) for each in made for number in range(nodes if pods else 0)]
    seen = observed(
        pools=made,
        groups=tuple(group(f"g{number}", parts[:4]) for number in range(groups)),
        pods=tuple(existing),
    )
    counted = Counter()
    sys.setprofile(lambda _frame, event, _argument: counted.update((event,)))
    try:
        STEPS(seen)
    finally:
        sys.setprofile(None)
    return counted["call"] + counted["c_call"]


def node_pod(of, number):
    body = pod("worker", f"{of.name}-{number}", phase="Pending")
    return body | {"metadata": metadata(f"{of.name}-{number}", labels=body["metadata"]["labels"] | label(of))}


def label(of):
    return {"ray.io/group": node_group_of(of)}


def test_the_number_of_bundles_costs_nothing():
    """So many bundles were expanded one by one: a group of 16 such pools took more than a second."""
    processes = MAX_NODE_PROCESSES // 4  # A group of all four pools has as many ranks as it may have.
    assert steps_of(nodes=MAX_POOL_NODES, processes=processes) < 1.1 * steps_of()


def test_groups_and_pools_do_not_multiply():
    idle = {"afterSeconds": 60}
    alone, more_groups, more_pools = steps_of(idle=idle), steps_of(groups=64, idle=idle), steps_of(pools=32, idle=idle)
    assert steps_of(pools=32, groups=64, idle=idle) < 1.2 * (more_groups + more_pools - alone)


def test_groups_and_pods_do_not_multiply():
    alone, more_groups, more_pods = steps_of(pods=True), steps_of(groups=64, pods=True), steps_of(nodes=200, pods=True)
    assert steps_of(groups=64, nodes=200, pods=True) < 1.2 * (more_groups + more_pods - alone)


def test_pools_and_pods_do_not_multiply():
    few, more_pools = steps_of(pods=True), steps_of(pools=32, pods=True)
    more_pods = steps_of(nodes=64, pods=True)
    per_pod = (more_pods - few) / (4 * 62)
    assert steps_of(pools=32, nodes=64, pods=True) < 1.2 * (more_pools + per_pod * 32 * 62)
