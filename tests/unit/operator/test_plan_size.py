import json

import pytest

from tests.unit.operator.make import NOW, decided, group, observed, of_kind, pool, statuses
from workergroups_api.conditions import Explanation, find
from workergroups_api.failure_policy import FailurePolicy, RestartHistory
from workergroups_api.plan import MAX_BIRTHS, ClusterPlan, PlannedBundles, PlannedGroup
from workergroups_api.retries import Retries
from workergroups_api.run import RunStatus
from workergroups_operator.desired.access import access
from workergroups_operator.desired.plan import cluster_plan, config_map
from workergroups_operator.policy.bundles import Assigned, Blocked
from workergroups_operator.policy.plan_size import MAX_BYTES
from workergroups_operator.policy.plan_size import within_budget as within_budget_of

# Of Kubernetes: a ConfigMap's data, and any object.
CONFIG_MAP_BYTES = 2**20
LONG = "n" * 40


def bundles(count):
    return Assigned(tuple(PlannedBundles(pool=LONG, start=32767, count=32768) for _ in range(count)))


def within_budget(assigned, runs=(), **policy):
    return within_budget_of(assigned, dict.fromkeys(assigned, FailurePolicy(**policy)), runs)


def refused(found):
    return [name for name, each in found.items() if isinstance(each, Blocked)]


def code(number):
    return {"configMap": {"name": f"{number:0250}"}}


def test_few_groups_fit():
    assigned = {f"g{number}": bundles(16) for number in range(100)}
    assert within_budget(assigned) == assigned


def test_the_oldest_that_fit_are_planned_and_the_others_say_why():
    assigned = {f"g{number}": bundles(1) for number in range(2000)}
    found = within_budget(assigned)
    late = refused(found)
    assert 300 < len(late) < 1000
    assert late == list(assigned)[-len(late) :]
    assert found[late[0]].why.reason == "ClusterTooLarge"
    assert str(MAX_BYTES) in found[late[0]].why.message


def test_a_suspended_group_that_does_not_fit_says_so_and_its_neighbours_are_suspended():
    policy = {"maxRestarts": 100}
    groups = tuple(group(f"g{number:03}", suspend=True, failurePolicy=policy) for number in range(400))
    updates = {each.metadata["name"]: each.after for each in statuses(observed(pools=(pool(),), groups=groups)).updates}
    first, last = (find(updates[name].conditions, "Suspended") for name in ("g000", "g399"))
    assert (first.status, first.reason) == ("True", "Suspended")
    assert (last.status, last.reason) == ("False", "ClusterTooLarge")
    assert find(updates["g399"].conditions, "Ready").reason == "ClusterTooLarge"


def test_a_group_without_bundles_takes_no_room():
    why = Blocked(Explanation("PoolNotFound", "none"))
    assert within_budget({f"g{number}": why for number in range(10_000)})["g9999"] is why


def test_what_fits_is_no_larger_than_estimated():
    """With the longest names and numbers that there can be."""
    assigned = {f"{number:040}": bundles(count) for number, count in enumerate([1, 2, 16] * 500)}
    planned = [
        PlannedGroup(
            name=name,
            uid="u" * 36,
            incarnation=10**9,
            revision="r" * 16,
            launch_revision="r" * 16,
            environment="e" * 32,
            session="s" * 56,
            retries=Retries(failures=5, next=NOW),
            hang_seconds=604800,
            restarts=RestartHistory(count=10**9, recent=(NOW,) * 100, failed_at=NOW),
            is_final=True,
            run=RunStatus(revision="r" * 16, start_time=NOW, end_time=NOW, reason="DeadlineExceeded"),
            births=dict.fromkeys(range(32768 - MAX_BIRTHS, 32768), 10**9),
            bundles=each.bundles,
        )
        for name, each in within_budget(assigned, runs=assigned, max_restarts=100, restart="Rank").items()
        if isinstance(each, Assigned)
    ]
    assert len(json.dumps([each.to_json() for each in planned], sort_keys=True)) < MAX_BYTES


@pytest.mark.parametrize(("size", "is_told"), [(10, True), (MAX_BYTES, False)])
def test_a_plan_that_would_be_too_large_tells_drivers_no_causes(size, is_told):
    planned = PlannedGroup(name="trainer", uid="uid-trainer", incarnation=2, cause="x" * size, bundles=())
    text = config_map(ClusterPlan(cluster="c", groups=(planned,)))["data"]["plan.json"]
    assert ("cause" in json.loads(text)["groups"][0]) == is_told


def test_plan_and_role_of_two_thousand_groups_fit_into_etcd():
    groups = tuple(
        group(f"{number:040}", pools=({"name": "actors", "bundles": {"start": number, "count": 1}},), code=code(number))
        for number in range(2000)
    )
    seen = observed(pools=(pool(nodes=512, processes=64),), groups=groups)
    plan = cluster_plan(seen, decided(seen))
    role = of_kind("Role", access(seen.key, plan, groups))
    assert 1000 < len(plan.groups) < 2000
    assert len(json.dumps(plan.to_json())) < CONFIG_MAP_BYTES
    assert len(json.dumps(role)) < CONFIG_MAP_BYTES
