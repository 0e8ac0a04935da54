"""An object that makes a pure step raise is found, reports it, and its neighbours are served without it."""

import pytest

from tests.unit.operator.make import (
    CREATED,
    NOW,
    SETTINGS,
    TIMINGS,
    child,
    group,
    observed,
    pod,
    pool,
    statuses,
    workers,
)
from workergroups_api.conditions import Explanation, find
from workergroups_operator import isolation
from workergroups_operator.isolation import pure_steps, without_culprits
from workergroups_operator.observed import Observed
from workergroups_operator.status.unknown import unknown

STEPS = pure_steps(SETTINGS, TIMINGS)


def odd_group(name="odd", **more):
    """Its wait began before any date."""
    return group(name, status={"deadline": "0001-01-01T00:00:00Z", "observedGeneration": 1}, **more)


def odd_pool(name="odd", **more):
    affinity = {}
    for _ in range(400):
        affinity = {"deep": affinity}
    return pool(name, podTemplate={"spec": {"affinity": affinity}}, **more)


def odd_pod(name="odd"):
    strange = pod("worker", name)
    return strange | {"status": {"phase": "Running", "conditions": [{}]}}


def seen_with(**parts):
    return observed(**{"pools": (pool(),), "groups": (group(),)} | parts)


def test_nothing_changes_where_nothing_raises():
    seen = seen_with()
    assert without_culprits(seen, STEPS) == seen


@pytest.mark.parametrize(
    ("parts", "culprits"),
    [
        ({"groups": (group("a"), odd_group(), group("b"))}, ["odd"]),
        (
            {"groups": tuple(odd_group(f"odd-{n}") if n % 3 == 0 else group(f"g{n}") for n in range(8))},
            ["odd-0", "odd-3", "odd-6"],
        ),
        ({"pools": (pool(), odd_pool(), pool("third"))}, ["odd"]),
        ({"pools": (pool(), odd_pool("odd-pool")), "groups": (group(), odd_group())}, ["odd-pool", "odd"]),
    ],
    ids=["a group", "several groups", "a pool", "one of each"],
)
def test_culprits_are_unreadable_and_their_neighbours_are_kept(parts, culprits):
    seen = seen_with(**parts)
    with pytest.raises((KeyError, OverflowError, RecursionError, ValueError)):
        STEPS(seen)
    kept = without_culprits(seen, STEPS)
    STEPS(kept)
    assert [odd.name for odd in kept.unreadable] == culprits
    names = {each.name for each in (*seen.pools, *seen.groups)} - set(culprits)
    assert {each.name for each in (*kept.pools, *kept.groups)} == names


@pytest.mark.parametrize("step", ["image_checks", "trials_of", "separated"])
def test_the_culprit_of_a_step_around_the_dry_runs_is_found_too(step, monkeypatch):
    original = getattr(isolation, step)

    def raises(*arguments):
        (seen,) = (each for each in arguments if isinstance(each, Observed))
        if "odd" in [pool.name for pool in seen.pools]:
            raise KeyError("odd")
        return original(*arguments)

    monkeypatch.setattr(isolation, step, raises)
    kept = without_culprits(seen_with(pools=(pool(), pool("odd"))), STEPS)
    assert [odd.name for odd in kept.unreadable] == ["odd"]


def raises_together(pod_name, *groups):
    """A step that raises if the pod is there together with one of these groups."""

    def step(seen):
        pods = {each["metadata"]["name"] for each in seen.pods}
        if pod_name in pods and {each.name for each in seen.groups} & set(groups):
            raise ValueError

    return step


@pytest.mark.parametrize(
    ("culprits", "unreadable", "pods"),
    [(["odd"], ["odd"], ["head", "other"]), (["a", "odd", "b"], [], ["other"])],
    ids=["one of the groups", "all groups"],
)
def test_who_is_to_blame_if_a_pod_and_a_group_raise_only_together(culprits, unreadable, pods):
    groups = (group("a"), group("odd"), group("b"))
    seen = seen_with(groups=groups, pods=(pod("head", "head"), pod("worker", "other")))
    kept = without_culprits(seen, raises_together("head", *culprits))
    assert [odd.name for odd in kept.unreadable] == unreadable
    assert [each["metadata"]["name"] for each in kept.pods] == pods


def test_a_culprit_reports_the_exception_and_the_way_out():
    kept = without_culprits(seen_with(groups=(group(), odd_group())), STEPS)
    (update,) = (update for update in statuses(kept).updates if update.metadata["name"] == "odd")
    assert (update.ready.status, update.ready.reason) == ("False", "InternalError")
    assert update.ready.message.startswith("OverflowError: date value out of range")
    assert "change its spec, or delete it" in update.ready.message
    progressing = find(update.after.conditions, "Progressing")
    assert (progressing.status, progressing.reason) == ("False", "InternalError")


def test_a_pool_that_cannot_be_read_for_a_while_stays_suspended_for_being_idle():
    slept = {"idle": {"since": NOW.isoformat(), "suspended": True}, "roll": "r", "template": "t"}
    kept = without_culprits(seen_with(pools=(odd_pool(status=slept),), groups=()), STEPS)
    (update,) = (update for update in statuses(kept).updates if update.metadata["name"] == "odd")
    remembered = update.after.to_json()
    assert (remembered["idle"]["suspended"], remembered["roll"], remembered["template"]) == (True, "r", "t")


def test_a_culprit_that_reported_it_before_is_not_written_again():
    kept = without_culprits(seen_with(pools=(odd_pool(),), groups=()), STEPS)
    first = statuses(kept).updates[0]
    again = without_culprits(seen_with(pools=(odd_pool(status=first.after.to_json()),), groups=()), STEPS)
    second = statuses(again).updates[0]
    assert second.after == second.before


def test_a_pod_that_cannot_be_understood_does_not_count():
    seen = seen_with(pods=(pod("head"), odd_pod(), *workers("p-0")))
    kept = without_culprits(seen, STEPS)
    assert [each["metadata"]["name"] for each in kept.pods] == ["actors-head", "p-0"]
    assert not kept.unreadable


def test_where_no_object_alone_is_the_culprit_the_step_still_raises():
    strange = child("Deployment", "actors-agent") | {("Deployment", "actors-agent"): {"metadata": {"labels": 1}}}
    kept = without_culprits(seen_with(children=strange), STEPS)
    with pytest.raises(AttributeError):
        STEPS(kept)


def ready(type_="Ready"):
    return {"type": type_, "status": "True", "reason": "R", "lastTransitionTime": CREATED}


def test_where_nobody_knows_each_condition_of_each_object_is_unknown_and_counts_stay():
    status = {"conditions": [ready("PoolsReady"), ready()], "incarnation": 3, "revision": "r", "readyRanks": 4}
    seen = observed(pools=(pool(),), groups=(group(status=status),))
    for_pool, for_group = unknown(seen, Explanation("InternalError", "why"), NOW)
    assert find(for_pool.after.conditions, "Ready").status == "Unknown"
    assert {(each.type, each.status, each.message) for each in for_group.after.conditions} == {
        ("PoolsReady", "Unknown", "why"),
        ("Ready", "Unknown", "why"),
        ("Progressing", "Unknown", "why"),
        ("Failed", "Unknown", "why"),
        ("Stalled", "Unknown", "why"),
    }
    assert (for_group.after.incarnation, for_group.after.revision, for_group.after.ready_ranks) == (3, "r", None)
