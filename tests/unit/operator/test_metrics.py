"""What Prometheus reads."""

from datetime import timedelta

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from tests.unit.operator.make import (
    HEAD,
    KEY,
    NOW,
    RANKS,
    group,
    observed,
    pod,
    pool,
    ready_pool,
    reservation,
    statuses,
    workers,
)
from workergroups_api.conditions import Condition
from workergroups_api.failure_policy import KeptFailure, RestartHistory
from workergroups_api.group_status import WorkerGroupStatus
from workergroups_api.manifest import WORKER_GROUP
from workergroups_api.report import OldestCall
from workergroups_operator.membership import ClusterKey
from workergroups_operator.metrics import Metrics
from workergroups_operator.observed import AgentHeartbeat
from workergroups_operator.status.conclusion import StatusUpdate


def scraped(metrics):
    """Each sample by its name and the values of its labels, in the order of their names."""
    text = generate_latest(metrics.registry).decode()
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {
        (sample.name, *(sample.labels[label] for label in sorted(sample.labels))): sample.value for sample in samples
    }


def noted(*updates):
    metrics = Metrics()
    metrics.is_leading = lambda: True
    metrics.note(KEY, updates)
    return metrics


# In the order of the labels' names: kind, name, namespace.
POOL, GROUP = ("ResourcePool", "actors", "team"), ("WorkerGroup", "trainer", "team")


def test_a_pool_has_its_size_its_devices_and_its_reason():
    found = scraped(noted(*statuses(observed(pools=(ready_pool(),))).updates))
    assert found["workergroups_ready", *POOL] == 1
    assert found["workergroups_ready_reason", *POOL, "Reserved", "True"] == 1
    assert found["workergroups_size", *POOL] == found["workergroups_ready_size", *POOL] == 2
    assert found["workergroups_pool_devices", *POOL[1:], "Free"] == 4
    assert found["workergroups_ready_transition_timestamp_seconds", *POOL] == NOW.timestamp()
    assert found["workergroups_clusters",] == 1


def states(**seen):
    found = scraped(noted(*statuses(observed(**seen)).updates))
    return {key[-1]: value for key, value in found.items() if key[0] == "workergroups_pool_devices"}


AWAY = AgentHeartbeat(known=(HEAD, "s1"), away_seconds=60.0)


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        ({"pools": (pool(suspend=True),)}, {"Pending": 4}),
        ({"pools": (pool(),)}, {"Pending": 4}),
        ({"pools": (ready_pool(),), "agent": AWAY}, {"Pending": 4}),
        ({"pools": (pool(accelerator={"vendor": "none"}),)}, {}),
    ],
)
def test_devices_have_a_state_as_a_whole(seen, expected):
    assert states(**seen) == expected


ON_NODE = [{"name": "actors", "bundles": {"start": 0, "count": 2}}]


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        ((group(status={"ranks": RANKS}),), {"Ready": 4}),
        ((group(status={"ranks": RANKS | {"readyCount": 3}}),), {"Launching": 4}),
        (
            (group(pools=ON_NODE, status={"ranks": RANKS | {"created": 2, "readyCount": 2, "ready": "0-1"}}),),
            {"Ready": 2, "Free": 2},
        ),
        # Two groups may share devices.
        ((group("a"), group("b", status={"ranks": RANKS})), {"Ready": 4}),
        ((group("a"), group("b")), {"Launching": 4}),
    ],
)
def test_devices_are_of_the_groups_that_have_their_bundles(groups, expected):
    assert states(pools=(ready_pool(),), groups=groups) == expected


def test_devices_of_a_pod_that_starts_are_held_and_nobody_uses_them():
    placed, starts = workers("p-0", "p-1")
    starts["status"]["phase"] = "Pending"
    placed["spec"]["nodeName"], starts["spec"]["nodeName"] = "gpu-0", "gpu-1"
    half = pool(status=reservation("p-0", reserved=1))
    assert states(pools=(half,), pods=(pod("head"), placed, starts)) == {"Free": 2, "Starting": 2}
    del starts["spec"]["nodeName"]
    assert states(pools=(half,), pods=(pod("head"), placed, starts)) == {"Free": 2, "Pending": 2}


def test_without_the_agent_devices_are_unknown_whose_pods_have_a_node():
    placed, waits = workers("p-0", "p-1")
    placed["spec"]["nodeName"] = "gpu-0"
    waits["spec"].pop("nodeName", None)
    found = states(pools=(ready_pool(),), agent=AWAY, pods=(pod("head"), placed, waits))
    assert found == {"Unknown": 2, "Pending": 2}


def on_node(worker, phase="Running", **metadata):
    worker["spec"]["nodeName"], worker["status"]["phase"] = "gpu-0", phase
    worker["metadata"] |= metadata
    return worker


ENDS = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("pods", "suspend", "expected"),
    [
        ([("Running", ENDS), ("Running", {})], False, {"Free": 2, "Ending": 2}),
        # While a pool rolls, it may have more devices than it asked for.
        ([("Running", ENDS), ("Running", {}), ("Running", {})], False, {"Free": 2, "Starting": 2, "Ending": 2}),
        ([("Running", ENDS), ("Running", {})], True, {"Ending": 4}),
        ([("Running", ENDS), ("Failed", ENDS)], True, {"Ending": 2, "Pending": 2}),
    ],
)
def test_a_pod_that_ends_holds_its_devices_until_it_has_ended(pods, suspend, expected):
    names = ("p-0", "p-1", "p-2")[: len(pods)]
    found = [on_node(each, phase, **more) for each, (phase, more) in zip(workers(*names), pods, strict=True)]
    kept = pool(suspend=True) if suspend else ready_pool()
    assert states(pools=(kept,), pods=(pod("head"), *found)) == expected


def test_a_pod_that_has_failed_holds_no_device():
    failed = on_node(*workers("a"), "Failed")
    assert states(pools=(pool(),), pods=(pod("head"), failed)) == {"Pending": 4}


def test_what_is_unknown_has_no_number():
    lost = observed(pools=(ready_pool(),), agent=AgentHeartbeat(known=(HEAD, "s1"), away_seconds=60.0))
    found = scraped(noted(*statuses(lost).updates))
    assert found["workergroups_ready_reason", *POOL, "AgentLost", "Unknown"] == 1
    assert (found["workergroups_size", *POOL], found.get(("workergroups_ready_size", *POOL))) == (2, None)


def of_group(status="True", reason="RanksReady", **more):
    ready = Condition(type="Ready", status=status, reason=reason, last_transition_time=NOW)
    after = WorkerGroupStatus(restarts=RestartHistory(count=3), world_size=4, ready_ranks=4)
    return StatusUpdate(WORKER_GROUP, group().metadata, after, after, None, ready, **more)


def test_the_seconds_of_devices_are_counted_until_the_pool_is_gone():
    metrics = noted(*statuses(observed(pools=(ready_pool(),))).updates)
    assert scraped(metrics)["workergroups_pool_device_seconds_total", *POOL[1:], "Free"] > 0
    metrics.forget(KEY)
    assert not [name for name in scraped(metrics) if "team" in name]


def test_what_cannot_be_read_for_a_while_goes_on_counting():
    metrics = noted(*statuses(observed(pools=(ready_pool(),))).updates)
    before = scraped(metrics)["workergroups_pool_device_seconds_total", *POOL[1:], "Free"]
    metrics.note(KEY, (), are_all=False)
    found = scraped(metrics)
    assert found["workergroups_pool_device_seconds_total", *POOL[1:], "Free"] > before
    assert found["workergroups_pool_device_seconds_total", *POOL[1:], "Unknown"] > 0
    metrics.note(KEY, ())
    assert not [name for name in scraped(metrics) if "team" in name]


def test_a_pool_that_has_moved_to_another_cluster_is_counted_once_and_not_forgotten():
    updates = statuses(observed(pools=(ready_pool(),))).updates
    metrics = noted(*updates)
    metrics.note(ClusterKey("team", "other"), updates)
    metrics.note(KEY, ())
    assert scraped(metrics)["workergroups_pool_device_seconds_total", *POOL[1:], "Free"] > 0
    text = generate_latest(metrics.registry).decode()
    assert text.count("workergroups_ready{") == 1


def test_a_histogram_of_conditions_begins_with_nothing():
    assert scraped(noted())["workergroups_condition_seconds_count", "Ready", "WorkerGroup"] == 0


def test_restarts_are_those_since_the_group_exists_and_a_call_has_its_beginning():
    call = OldestCall(method="train", rank=1, since=NOW)
    found = scraped(noted(of_group(oldest_call=call.since)))
    assert found["workergroups_group_restarts_total", *GROUP[1:]] == 3
    assert found["workergroups_group_oldest_call_timestamp_seconds", *GROUP[1:]] == NOW.timestamp()


DEAD = KeptFailure(rank=1, incarnation=1, reason="ProcessDied", message="killed", time=NOW)


@pytest.mark.parametrize(("result", "count"), [("taken", 1), ("failed", None), ("refused", None)])
def test_a_failure_counts_once_its_status_is_taken(result, count):
    update = of_group("False", "ProcessDied", new_failures=(DEAD,))
    metrics = noted(update)
    metrics.written(update, result)
    found = scraped(metrics)
    assert found.get(("workergroups_rank_failures_total", *GROUP[1:], "ProcessDied")) == count
    assert found["workergroups_status_writes_total", result] == 1


@pytest.mark.parametrize("end", [lambda metrics: metrics.forget(KEY), lambda metrics: metrics.note(KEY, ())])
def test_of_a_group_that_is_gone_nothing_is_left(end):
    update = of_group(new_failures=(DEAD,))
    metrics = noted(update)
    metrics.written(update, "taken")
    end(metrics)
    assert not [name for name in scraped(metrics) if "team" in name]


def test_a_process_that_waits_says_nothing_of_pools_and_groups():
    metrics = noted(of_group())
    assert scraped(metrics)["workergroups_leading",] == 1
    metrics.is_leading = lambda: False
    found = scraped(metrics)
    assert found["workergroups_leading",] == 0
    assert not [name for name in found if "team" in name]


def test_what_became_ready_is_counted_once_its_status_is_taken():
    before = Condition(type="Ready", status="False", reason="Launching", last_transition_time=NOW)
    ready = Condition(type="Ready", status="True", reason="RanksReady", last_transition_time=NOW + timedelta(seconds=4))
    old, new = WorkerGroupStatus(conditions=(before,)), WorkerGroupStatus(conditions=(ready,))
    update = StatusUpdate(WORKER_GROUP, group().metadata, old, new, before, ready)
    metrics = noted(update)
    for result in ("failed", "taken"):
        metrics.written(update, result)
    found = scraped(metrics)
    assert found["workergroups_condition_seconds_count", "Ready", "WorkerGroup"] == 1
    assert found["workergroups_condition_seconds_sum", "Ready", "WorkerGroup"] == 4


def test_agents_that_are_silent_are_seen():
    metrics = noted()
    metrics.silences = lambda: {KEY: 7.5}
    assert scraped(metrics)["workergroups_agent_silence_seconds", KEY.name, KEY.namespace] == 7.5


def test_reconciles_are_counted_by_duration_and_outcome():
    metrics = Metrics()
    metrics.reconciled(0.02, has_failed=False)
    metrics.reconciled(20.0, has_failed=True)
    found = scraped(metrics)
    assert found["workergroups_reconcile_seconds_count", "done"] == 1
    assert found["workergroups_reconcile_seconds_bucket", "10.0", "failed"] == 0
    assert found["workergroups_reconcile_seconds_sum", "failed"] == 20
