"""What the plan asks the agent to check, and what a pool and its groups say of it."""

import pytest

from tests.unit.operator.make import (
    CONNECTED,
    NODE_GROUP,
    SESSION,
    built,
    decided,
    group,
    observed,
    pod,
    pool,
    reservation,
    status_of,
    statuses,
    workers,
)
from workergroups_api.conditions import find
from workergroups_api.vouching import EVERY
from workergroups_operator.desired.plan import cluster_plan
from workergroups_operator.policy.preflight import planned_preflight

VOLUMES = [
    {"mountPath": "/data", "emptyDir": {}},
    {"mountPath": "/models", "readOnly": True, "emptyDir": {}},
    {"mountPath": "/logs", "pods": "Head", "emptyDir": {}},
]


def planned(**spec):
    seen = observed(pools=(pool(**spec),))
    return cluster_plan(seen, decided(seen)).pools[0].preflight


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ({}, None),
        ({"preflight": "None"}, None),
        ({"preflight": "Basic"}, ("Basic", None, ())),
        ({"preflight": "Fabric", "sharedMemory": "8Gi"}, ("Fabric", 8 * 2**30, ())),
        ({"preflight": "Basic", "volumes": VOLUMES}, ("Basic", None, ("/data",))),
        # A suspended pool has no nodes.
        ({"preflight": "Basic", "suspend": True}, None),
    ],
)
def test_the_plan_says_what_is_checked(spec, found):
    preflight = planned(**spec)
    assert found == (preflight and (preflight.level, preflight.shared_memory, preflight.writable))


def test_what_waits_for_a_restart_is_not_checked():
    before = pool(preflight="Basic", sharedMemory="8Gi", volumes=VOLUMES[:1])
    seen = observed(pools=(before,))
    template = built(seen).of(before)
    after = pool(preflight="Basic", sharedMemory="9Gi", volumes=[{"mountPath": "/new", "emptyDir": {}}, *VOLUMES[:1]])
    found = planned_preflight(after, template)
    assert (found.shared_memory, found.writable) == (8 * 2**30, ("/data",))


def preflight(state="Passed", level="Basic", passed="0-1", message=None):
    return {"preflight": {"level": level, "state": state, "passed": passed, "message": message}}


def conditions_of(report, level="Basic", **parts):
    pool_ = pool(preflight=level, status=reservation("p-0", "p-1", **report), **parts.pop("spec", {}))
    update = status_of(observed(pools=(pool_,), **parts))
    return find(update.after.conditions, "PreflightPassed"), update.ready


@pytest.mark.parametrize(
    ("report", "level", "status", "reason", "words"),
    [
        (preflight(), "Basic", "True", "PreflightPassed", "Basic: all nodes passed"),
        (
            preflight(level="Fabric", message="all-reduce: 44 GB/s"),
            "Fabric",
            "True",
            "PreflightPassed",
            "all nodes passed; all-reduce: 44 GB/s",
        ),
        # A pool that shrinks has nodes beyond those of the spec.
        (preflight("Waiting", passed="0-1"), "Basic", "True", "PreflightPassed", "all nodes passed"),
        (
            preflight("Checking", passed="0", message="asking"),
            "Basic",
            "False",
            "Checking",
            "1 of 2 nodes passed; asking",
        ),
        (
            preflight("Failed", passed="0", message="p-1 has 7 of 8"),
            "Basic",
            "False",
            "PreflightFailed",
            "p-1 has 7 of 8",
        ),
        ({}, "Basic", "False", "Checking", "waiting until the agent begins"),
        # The report is about what the spec asked for before.
        (preflight(), "Fabric", "False", "Checking", "waiting until the agent begins"),
    ],
)
def test_a_pool_is_ready_when_its_nodes_have_passed(report, level, status, reason, words):
    found, ready = conditions_of(report, level)
    assert (found.status, found.reason) == (ready.status, ready.reason) == (status, reason)
    assert words in found.message


def test_a_failure_says_the_ways_out():
    found, _ = conditions_of(preflight("Failed", passed=""))
    assert "set spec.preflight to None" in found.message


def test_a_pool_that_reserves_nothing_passes_as_a_whole():
    for state, status in (("Passed", "True"), ("Checking", "False")):
        found, ready = conditions_of(preflight(state, passed=""), spec={"reservation": "None"})
        assert (found.status, ready.status) == (status, status)


def test_without_a_check_there_is_no_condition():
    found, ready = conditions_of({}, "None")
    assert (found, ready.status) == (None, "True")


def test_what_is_missing_before_the_check_is_the_reason():
    found, ready = conditions_of(preflight(), pods=(pod("head"), *workers("p-0")))
    assert (found.status, ready.status, ready.reason) == ("True", "False", "PodsChanged")


def test_nobody_knows_what_an_agent_does_not_vouch_for():
    doubtful = CONNECTED.__class__(session=SESSION, seen_with_head_seconds=10.0, doubts={EVERY: "it hangs"})
    found, _ = conditions_of(preflight(), agent=doubtful)
    assert (found.status, found.reason) == ("Unknown", "StatusNotWritten")


def test_a_suspended_pool_has_not_passed():
    found, ready = conditions_of(preflight(), spec={"suspend": True})
    assert (found.status, ready.status) == ("False", "False")


def test_a_group_whose_nodes_are_reserved_says_that_its_ranks_wait():
    checked = pool(preflight="Basic", status=reservation("p-0", "p-1", **preflight("Failed", passed="")))
    waits = "pool actors has not passed its preflight"
    report = {"session": SESSION, "incarnation": 1, "state": "WaitingForPools", "message": waits}
    trainer = group(status={"incarnation": 1, "session": SESSION, "ranks": report})
    updates = statuses(observed(pools=(checked,), groups=(trainer,))).updates
    conditions = next(each for each in updates if each.metadata["name"] == "trainer").after.conditions
    created = find(conditions, "RanksCreated")
    assert (created.status, created.reason) == ("False", "WaitingForPools")
    assert waits in created.message


def test_nothing_is_checked_while_the_nodes_are_restarted(monkeypatch):
    monkeypatch.setattr("workergroups_operator.decisions._rolls", lambda *_: {NODE_GROUP: None})
    seen = observed(pools=(pool(preflight="Basic"),))
    assert decided(seen).preflights == {}
