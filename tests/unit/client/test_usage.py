"""What `workergroups top` shows of what the nodes report."""

import json
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from tests.unit.client.fake_cluster import FakeCluster, group, pool
from workergroups.naming import RankName
from workergroups_cli import top_command
from workergroups_cli.app import app
from workergroups_client.pods import usage

GIB = 1 << 30


def row(rank, activity, method, seconds, of="policy"):
    return str(RankName(of, f"uid-of-{of}", 1, rank, 2)), activity, method, seconds


SECONDS = [
    row(0, "Running", "step", 60.0),
    row(0, "Collective", "step", 20.0),
    row(0, "Idle", "", 20.0),
    row(1, "Running", "load", 30.0),
    row(1, "Idle", "", 70.0),
    row(0, "Running", "judge", 1.0, of="critic"),
    row(1, "", "", 0.0, of="critic"),
]
DEVICES = [("ppo-a", "0", "H200", 0.934, 41 * GIB, 140 * GIB)]


@pytest.fixture
def shown(monkeypatch):
    objects = [pool("ppo"), group("policy"), group("critic")]
    for each in objects:
        each["metadata"]["uid"] = f"uid-of-{each['metadata']['name']}"
    answers, slept = [], []
    clock = SimpleNamespace(sleep=slept.append, monotonic=lambda: sum(slept))
    monkeypatch.setattr(top_command, "Cluster", lambda *_: FakeCluster(*objects))
    monkeypatch.setattr(usage, "head", lambda *_: ("ppo-head", "ray-head"))
    monkeypatch.setattr(usage, "ask_for_processes", lambda *_: answers.pop(0))
    monkeypatch.setattr(usage, "time", clock)

    def show(*words, seconds=(SECONDS,), devices=DEVICES, troubles=((), ())):
        answers.extend([each, devices, lacks] for each, lacks in zip(seconds, troubles, strict=False))
        made = CliRunner().invoke(app, ["top", *words])
        return [line.split() for line in made.output.splitlines()] if "json" not in words else json.loads(made.stdout)

    return show


def test_a_pool_has_a_line_for_each_group_and_each_device(shown):
    lines = shown("ppo")
    assert ["GROUP", "RANKS", "COUNTED", "IDLE", "WAITING", "COLLECTIVE", "RUNNING", "METHODS"] in lines
    assert ["critic", "0-1", "1s", "0%", "0%", "0%", "100%", "judge", "100%"] in lines
    assert ["policy", "0-1", "3m20s", "45%", "0%", "10%", "45%", "step", "40%,", "load", "15%"] in lines
    assert ["ppo-a", "0", "H200", "93%", "41.0", "of", "140", "GiB"] in lines


def test_a_group_has_a_line_for_each_rank(shown):
    lines = shown("group/policy")
    assert ["policy", "0", "1m40s", "20%", "0%", "20%", "60%", "step", "80%"] in lines
    assert ["policy", "1", "1m40s", "70%", "0%", "0%", "30%", "load", "30%"] in lines
    assert not any(line[:1] == ["critic"] for line in lines)


def test_ranks_that_count_nothing_are_named(shown):
    lines = shown("group/critic")
    assert ["critic", "1", "-", "-", "-", "-", "-", "-"] in lines
    assert any(line[:5] == ["not", "counted:", "critic", "1.", "Ranks"] for line in lines)


def test_a_time_is_measured_from_its_beginning_to_its_end(shown):
    later = [row(0, "Running", "step", 90.0), row(0, "Collective", "step", 20.0), row(0, "Idle", "", 50.0)]
    assert ["policy", "0", "1m0s", "50%", "0%", "0%", "50%", "step", "50%"] in shown(
        "group/policy", "--over", "1m", seconds=(SECONDS, later)
    )


def test_a_rank_that_began_within_the_time_has_spent_all_that_it_has_counted(shown):
    later = [row(0, "Running", "step", 55.0), row(0, "Idle", "", 5.0)]
    lines = shown("group/policy", "--over", "1m", seconds=([row(0, "", "", 0.0)], later))
    assert ["policy", "0", "1m0s", "8%", "0%", "0%", "92%", "step", "92%"] in lines


def test_a_rank_that_began_before_the_time_and_had_no_metrics_then_is_not_counted(shown):
    later = [row(0, "Running", "step", 900.0), row(0, "Idle", "", 100.0)]
    for before in ([], [row(0, "", "", 0.0)]):
        lines = shown("group/policy", "--over", "1m", seconds=(before, later))
        assert ["policy", "0", "-", "-", "-", "-", "-", "-"] in lines


def test_a_time_shorter_than_two_reports_is_refused(shown):
    assert "20s or more" in " ".join(word for line in shown("ppo", "--over", "19s") for word in line)


def test_pods_without_metrics_are_named(shown):
    assert ["pod", "ppo-b", "has", "no", "metrics:", "timed", "out"] in shown(
        "ppo", troubles=[["pod ppo-b has no metrics: timed out"]]
    )


def test_pods_without_metrics_at_either_end_of_a_measurement_are_named_once(shown):
    lines = shown("ppo", "--over", "1m", seconds=(SECONDS, SECONDS), troubles=(["pod b", "pod c"], ["pod c", "pod d"]))
    assert [line for line in lines if line[:1] == ["pod"]] == [["pod", "b"], ["pod", "c"], ["pod", "d"]]


def test_scripts_get_shares_and_bytes(shown):
    answer = shown("group/policy", "--output", "json")
    assert answer["kind"] == "UsageList"
    activities = {"Idle": 0.2, "Waiting": 0.0, "Collective": 0.2, "Running": 0.6}
    first = {"group": "policy", "ranks": "0", "seconds": 100.0, "activities": activities, "methods": {"step": 0.8}}
    assert answer["items"][0] == first
    assert answer["devices"][0]["usedBytes"] == 41 * GIB


def test_a_device_whose_driver_reports_neither_utilisation_nor_memory_has_no_figures(shown):
    unknown = [("ppo-a", "2001", "MIG", None, None, None)]
    assert ["ppo-a", "2001", "MIG", "-", "-"] in shown("ppo", devices=unknown)
    (device,) = shown("ppo", "--output", "json", devices=unknown)["devices"]
    assert (device["utilization"], device["usedBytes"], device["totalBytes"]) == (None, None, None)


def test_a_pool_without_ranks_says_so(shown):
    words = ["no", "group", "has", "ranks", "on", "the", "Ray", "cluster", "of", "pool", "ppo"]
    assert words in shown("ppo", seconds=([],))
