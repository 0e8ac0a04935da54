"""Suspended pools and groups: what is desired for them, and what they say."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.unit.operator.make import (
    ACCOUNT,
    NODE_GROUP,
    NOW,
    SESSION,
    built,
    child,
    decided,
    group,
    observed,
    pod,
    pool,
    ready_pool,
    reservation,
    statuses,
    wanted,
    workers,
)
from workergroups_api.conditions import Explanation, find
from workergroups_api.failure_policy import FailurePolicy, RestartHistory
from workergroups_api.manifest import RESOURCE_POOL
from workergroups_api.plan import ClusterPlan, PlannedBundles, PlannedGroup
from workergroups_operator.apply import changes
from workergroups_operator.desired.plan import cluster_plan
from workergroups_operator.failures import Failures
from workergroups_operator.observed import AgentHeartbeat, UnreadableObject
from workergroups_operator.policy.bundles import Suspended
from workergroups_operator.policy.incarnation import GroupIncarnation, suspended_incarnation
from workergroups_operator.policy.plan_size import within_budget
from workergroups_operator.policy.suspension import by_priority
from workergroups_operator.try_pods import trials_of

RAY_CLUSTER = child("RayCluster", "actors")
RUNNING = {"incarnation": 3, "revision": "r", "session": SESSION}
WAS_SUSPENDED = {
    "conditions": [
        {"type": "Suspended", "status": "False", "reason": "Resumed", "lastTransitionTime": NOW.isoformat()},
    ]
}


def conditions(update):
    return {each.type: each for each in update.after.conditions}


def said(seen, type_="Ready", number=-1, **more):
    found = find(statuses(seen, **more).updates[number].after.conditions, type_)
    return found and (found.status, found.reason)


def manifest(kind, seen):
    return next((each for each in wanted(seen) if each["kind"] == kind), None)


def empty(**parts):
    """A cluster of which nothing runs."""
    return observed(pods=(), agent=AgentHeartbeat(), **parts)


def test_a_suspended_pool_has_no_ray_cluster_and_no_agent():
    seen = observed(pools=(pool(suspend=True),), children={**RAY_CLUSTER, **ACCOUNT})
    assert manifest("RayCluster", seen) is None
    assert manifest("Deployment", seen)["spec"]["replicas"] == 0
    assert changes(seen, decided(seen), wanted(seen)).delete == seen.ray_cluster


def test_a_ray_cluster_that_is_being_deleted_is_deleted_once():
    leaving = child("RayCluster", "actors", metadata={"deletionTimestamp": "2026-01-01T12:00:00Z"})
    seen = observed(pools=(pool(suspend=True),), children=leaving)
    assert changes(seen, decided(seen), ()).delete is None


def test_a_ray_cluster_of_somebody_else_is_not_deleted():
    seen = observed(pools=(pool(suspend=True),), children=child("RayCluster", "actors", "uid-other"))
    assert changes(seen, decided(seen), ()).delete is None
    assert said(seen, "Suspended") == ("False", "PreviousLeaving")


def test_pods_that_hang_keep_no_suspended_cluster_from_being_planned():
    seen = empty(pools=(pool(suspend=True),), previous_pods=workers("p-0"))
    assert decided(seen).obstacle is None
    assert manifest("ConfigMap", seen) is not None
    resumed = empty(pools=(pool(),), previous_pods=workers("p-0"))
    assert decided(resumed).obstacle.reason == "PreviousLeaving"


@pytest.mark.parametrize("is_head_shaper", [True, False])
def test_a_cluster_with_another_pool_loses_only_the_nodes_of_the_suspended_one(is_head_shaper):
    other = pool("critics", 1, 1, clusterName="actors")
    suspended = pool(suspend=True, head={"priorityClassName": "first"})
    pools = (suspended, other) if is_head_shaper else (other, suspended)
    seen = observed(pools=pools, children={**RAY_CLUSTER, **ACCOUNT})
    cluster = manifest("RayCluster", seen)
    groups = [(each["groupName"], each["replicas"]) for each in cluster["spec"]["workerGroupSpecs"]]
    assert groups == [("critics-uid-crit", 1), (NODE_GROUP, 0)]
    without = replace(seen, pods=(pod("head"),))
    groups = [each["groupName"] for each in manifest("RayCluster", without)["spec"]["workerGroupSpecs"]]
    assert groups == ["critics-uid-crit"]
    running = observed(pools=(replaced(suspended, suspend=False), other), children={**RAY_CLUSTER, **ACCOUNT})
    if is_head_shaper:
        assert cluster["spec"]["headGroupSpec"] == manifest("RayCluster", running)["spec"]["headGroupSpec"]
    assert manifest("Deployment", seen)["spec"]["replicas"] == 1


def replaced(subject, **spec):
    return subject.model_copy(update={"spec": subject.spec.model_copy(update=spec)})


def test_the_nodes_of_a_suspended_pool_are_taken_from_a_live_ray_cluster():
    live = child("RayCluster", "actors", spec={"workerGroupSpecs": [{"groupName": NODE_GROUP, "replicas": 2}]})
    other = pool("critics", 1, 1, clusterName="actors")
    seen = observed(pools=(pool(suspend=True), other), children=live)
    groups = manifest("RayCluster", seen)["spec"]["workerGroupSpecs"]
    assert [(each["groupName"], each["replicas"]) for each in groups] == [("critics-uid-crit", 1), (NODE_GROUP, 0)]


def test_a_pool_that_cannot_be_read_keeps_the_cluster():
    odd = UnreadableObject(RESOURCE_POOL, {"metadata": {"name": "odd", "uid": "uid-odd"}}, Explanation("X", "x"))
    seen = observed(pools=(pool(suspend=True),), unreadable=(odd,), children=RAY_CLUSTER)
    assert not decided(seen).is_off
    assert changes(seen, decided(seen), ()).delete is None


def test_no_pods_of_a_suspended_pool_are_tried():
    seen = empty(pools=(pool(suspend=True),))
    assert trials_of(seen, built(seen)) == {}
    seen = empty(pools=(pool(suspend=True), pool("critics", 1, 1, clusterName="actors")))
    assert trials_of(seen, built(seen)).keys() == {"head", "critics-uid-crit"}


def test_the_agent_releases_the_bundles_of_a_suspended_pool_and_still_reports_on_it():
    seen = observed(pools=(pool(suspend=True),), groups=(group(status=RUNNING),))
    planned = cluster_plan(seen, decided(seen))
    assert [(each.name, each.reserves) for each in planned.pools] == [("actors", False)]
    # Its groups keep their claim on the bundles; in no session, nobody launches them.
    assert [(each.incarnation, each.session, each.world_size) for each in planned.groups] == [(4, None, 4)]


def test_a_suspended_pool_shrinks_and_grows_at_once_since_it_has_no_ranks():
    """Also if its groups kept it from shrinking before."""
    seen = observed(pools=(ready_pool(),), groups=(group(status=RUNNING),))
    before = cluster_plan(seen, decided(seen))
    assert [each.settled for each in before.pools] == [2]
    for nodes in (1, 3):
        asleep = replace(seen, pools=(pool(nodes=nodes, suspend=True),), plan=before)
        decisions = decided(asleep)
        planned = cluster_plan(asleep, decisions)
        assert [(each.nodes, each.settled) for each in planned.pools] == [(nodes, 0)]
        assert decisions.sizes["actors"].victims == ()
        awake = replace(asleep, pools=(pool(nodes=nodes),), plan=planned)
        after = cluster_plan(awake, decided(awake))
        assert [(each.incarnation, each.world_size) for each in after.groups] == [(5, 2 * nodes)]


def test_suspended_groups_are_planned_as_long_as_there_is_room():
    groups = (group("fresh", suspend=True), group("ran", suspend=True, status=RUNNING))
    seen = observed(pools=(ready_pool(),), groups=groups)
    plan = cluster_plan(seen, decided(seen))
    assert [(each.name, each.incarnation, each.bundles) for each in plan.groups] == [("fresh", 1, ()), ("ran", 4, ())]
    many = {f"g{number}": Suspended(Explanation("Suspended", "")) for number in range(2000)}
    reasons = [each.why.reason for each in within_budget(many, dict.fromkeys(many, FailurePolicy())).values()]
    assert (reasons[0], reasons[-1]) == ("Suspended", "ClusterTooLarge")


@pytest.mark.parametrize(
    ("last", "then"),
    [
        (None, GroupIncarnation(1)),
        (GroupIncarnation(1, "r"), GroupIncarnation(1)),
        (GroupIncarnation(3, "r", "s", environment="e"), GroupIncarnation(4, environment="now")),
        (GroupIncarnation(4, environment="e"), GroupIncarnation(4, environment="now")),
    ],
)
def test_ranks_that_are_set_aside_never_come_back_under_their_number(last, then):
    assert suspended_incarnation(last, then.environment) == then


def test_restarts_are_still_counted_and_the_failure_is_over():
    recent = RestartHistory(count=7, recent=(NOW,), failed_at=NOW)
    then = suspended_incarnation(GroupIncarnation(3, "r", "s", restarts=recent), None)
    assert then.restarts == RestartHistory(count=7, recent=(NOW,))


@pytest.mark.parametrize("suspended", ["pool", "group"])
def test_a_group_is_resumed_as_a_new_incarnation_also_in_the_same_session(suspended):
    group_ = group(status=RUNNING, suspend=suspended == "group")
    seen = observed(pools=(ready_pool() if suspended == "group" else pool(suspend=True),), groups=(group_,))
    decisions = decided(seen)
    incarnation = decisions.groups.incarnations["trainer"]
    assert (incarnation.number, incarnation.revision, incarnation.session) == (4, None, None)
    # Nobody may have written the status.
    resumed = replace(seen, pools=(ready_pool(),), groups=(group(status=RUNNING),), plan=cluster_plan(seen, decisions))
    incarnation = decided(resumed).groups.incarnations["trainer"]
    assert (incarnation.number, incarnation.session) == (4, SESSION)
    # Or nobody may have written the plan.
    after = statuses(seen).updates[-1].after.to_json()
    resumed = replace(seen, pools=(ready_pool(),), groups=(group(status=after),), plan=None)
    incarnation = decided(resumed).groups.incarnations["trainer"]
    assert (incarnation.number, incarnation.session) == (4, SESSION)


@pytest.mark.parametrize(
    ("parts", "suspended"),
    [
        ({}, ("False", "Suspending")),
        ({"pods": (pod("head"),)}, ("False", "Suspending")),
        ({"pods": (), "previous_pods": workers("p-0")}, ("False", "Suspending")),
        ({"pods": (), "children": RAY_CLUSTER}, ("False", "Suspending")),
        ({"pods": ()}, ("True", "Suspended")),
    ],
)
def test_a_pool_is_suspended_once_nothing_is_left(parts, suspended):
    seen = observed(pools=(pool(suspend=True, status=reservation("p-0", "p-1")),), **parts)
    assert said(seen, "Suspended") == suspended
    assert said(seen) == ("False", "Suspended")
    after = statuses(seen).updates[-1].after
    assert (after.ready_nodes, after.deadline) == (0, None)
    assert said(seen, "Failed") == said(seen, "Stalled") == ("False", "NoFailure")
    assert said(seen, now=NOW + timedelta(days=1), type_="Progressing") == ("False", "Suspended")


def test_a_ray_cluster_that_cannot_be_deleted_is_reported():
    failures = Failures({"RayCluster": Explanation("ApplyFailed", "no")})
    assert said(observed(pools=(pool(suspend=True),)), "Suspended", failures=failures) == ("False", "ApplyFailed")


def test_a_suspended_pool_of_a_cluster_that_runs_needs_only_its_own_pods_gone():
    pools = (pool("critics", 1, 1, clusterName="actors"), pool(suspend=True))
    assert said(observed(pools=pools, pods=(pod("head"), *workers("p-0"))), "Suspended") == ("False", "Suspending")
    seen = observed(pools=pools, pods=(pod("head"),))
    assert (said(seen, "Suspended"), said(seen)) == (("True", "Suspended"), ("False", "Suspended"))
    assert said(seen, "ClusterReady") == ("True", "AgentConnected")


def test_what_was_never_suspended_says_nothing_of_it():
    seen = observed(pools=(ready_pool(),), groups=(group(),))
    assert (said(seen, "Suspended"), said(seen, "Suspended", 0)) == (None, None)


def test_what_was_resumed_says_so():
    seen = observed(pools=(ready_pool(**WAS_SUSPENDED),), groups=(group(status=WAS_SUSPENDED),))
    assert said(seen, "Suspended") == said(seen, "Suspended", 0) == ("False", "Resumed")


def test_groups_on_a_suspended_pool_have_no_ranks_and_no_deadline():
    for group_ in (group(), group(status=RUNNING)):
        seen = empty(pools=(pool(suspend=True),), groups=(group_,))
        found = conditions(statuses(seen).updates[-1])
        assert {found[type_].reason for type_ in ("PoolsReady", "RanksCreated", "RanksReady")} == {"PoolSuspended"}
        assert (found["Ready"].reason, found["Progressing"].status) == ("PoolSuspended", "False")
        assert found["Failed"].status == "False"
        assert "workergroups resume actors" in found["Ready"].message
        assert found["UpToDate"].status == "Unknown"
        after = statuses(seen).updates[-1].after
        assert (after.deadline, after.ready_ranks, after.world_size) == (None, 0, 4)


def report(state, **more):
    return {"incarnation": 4, "ranks": {"session": SESSION, "incarnation": 4, "state": state, **more}}


LOST = AgentHeartbeat(session=None, known=("uid-actors-head/life-1", SESSION), away_seconds=9.0)


@pytest.mark.parametrize(
    ("status", "parts", "suspended"),
    [
        (RUNNING, {}, ("False", "Suspending")),
        (
            report("Suspending", message="2 ranks of earlier incarnations have not ended yet"),
            {},
            ("False", "Suspending"),
        ),
        (report("Suspended"), {}, ("True", "Suspended")),
        (report("Suspended"), {"agent": LOST}, ("Unknown", "AgentLost")),
        (RUNNING, {"pods": ()}, ("True", "Suspended")),
        # It never had ranks, so the agent does not know it.
        ({}, {}, ("True", "Suspended")),
        ({"incarnation": 1}, {}, ("True", "Suspended")),
    ],
)
def test_a_group_is_suspended_once_the_agent_sees_no_rank_of_it(status, parts, suspended):
    seen = observed(pools=(ready_pool(),), groups=(group(suspend=True, status=status),), **parts)
    assert said(seen, "Suspended") == suspended
    assert said(seen) == ("False", "Suspended")


def planned(name, *, has_bundles=True, session=SESSION):
    bundles = (PlannedBundles(pool="actors", start=0, count=4),) if has_bundles else ()
    return PlannedGroup(name=name, uid=f"uid-{name}", incarnation=1, session=session, bundles=bundles)


@pytest.mark.parametrize(
    ("planned_groups", "order"),
    [
        # The resumed group waits for those that took its bundles ...
        ((planned("new"),), ["new", "old"]),
        ((planned("old", has_bundles=False), planned("new")), ["new", "old"]),
        # ... and once it has bundles, it keeps them.
        ((planned("old"), planned("new")), ["old", "new"]),
        # It keeps them also while its pool is suspended.
        ((planned("old", session=None), planned("new")), ["old", "new"]),
    ],
)
def test_a_resumed_group_takes_no_bundles_from_those_that_have_them(planned_groups, order):
    groups = (group("old", status=WAS_SUSPENDED), group("new"))
    seen = observed(pools=(ready_pool(),), groups=groups, plan=ClusterPlan(cluster="actors", groups=planned_groups))
    assert [each.name for each in by_priority(seen)] == order


def test_a_resumed_group_keeps_its_bundles_if_somebody_deletes_the_plan():
    running = WAS_SUSPENDED | RUNNING
    seen = observed(pools=(ready_pool(),), groups=(group("old", status=running), group("new")), plan=None)
    assert [each.name for each in by_priority(seen)] == ["old", "new"]


def test_a_suspended_group_leaves_its_bundles_to_others():
    pool_ = ready_pool().model_copy(update={"spec": pool(maxColocateCount=1).spec})
    groups = (group("old", suspend=True), group("new"))
    seen = observed(pools=(pool_,), groups=groups)
    bundles = decided(seen).groups.bundles
    assert bundles["old"].why.reason == "Suspended"
    assert [part.count for part in bundles["new"].bundles] == [4]
    groups = (group("old", status=WAS_SUSPENDED), group("new"))
    plan = cluster_plan(seen, decided(seen))
    bundles = decided(replace(seen, groups=groups, plan=plan)).groups.bundles
    assert bundles["old"].why.reason == "PoolFull"


def test_a_suspended_group_on_a_pool_that_cannot_be_read_is_not_carried_on():
    odd = UnreadableObject(RESOURCE_POOL, {"metadata": {"name": "actors", "uid": "uid-actors"}}, Explanation("X", "x"))
    seen = observed(
        pools=(pool("critics", 1, 1, clusterName="actors"),),
        groups=(group("trainer", suspend=True, status=RUNNING),),
        unreadable=(odd,),
        plan=ClusterPlan(cluster="actors", groups=(planned("trainer"),)),
    )
    assert [(each.name, each.bundles) for each in cluster_plan(seen, decided(seen)).groups] == [("trainer", ())]
