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


def name(rank, of="policy", size=2):
    return str(RankName(of, f"uid-of-{of}", 1, rank, size))


def row(rank, activity, method, seconds, of="policy"):
    return name(rank, of), activity, method, seconds


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

    def show(*words, seconds=(SECONDS,), created=(), devices=DEVICES, troubles=((), ())):
        answers.extend([each, created, devices, lacks] for each, lacks in zip(seconds, troubles, strict=False))
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


def test_a_rank_that_counts_nothing_has_a_line_without_figures(shown):
    assert ["critic", "1", "-", "-", "-", "-", "-", "-"] in shown("group/critic")


@pytest.mark.parametrize("target", ["ppo", "group/critic"])
def test_ranks_that_count_nothing_are_named(shown, target):
    lines = shown(target)
    assert any(line[:5] == ["not", "counted:", "critic", "1.", "Ranks"] for line in lines)
    assert not any(line[:1] == ["missing:"] or line[:2] == ["counted", "nothing:"] for line in lines)
    of_critic = [each for each in shown(target, "--output", "json")["items"] if each["group"] == "critic"]
    assert [each["uncounted"] for each in of_critic if each["uncounted"]] == ["1"]


def test_a_group_whose_ranks_are_being_created_is_shown_with_them_as_missing(shown):
    lines = shown("ppo", created=[name(rank, "ref", 4) for rank in (0, 1, 3)])
    assert ["ref", "0-3", "-", "-", "-", "-", "-", "-"] in lines
    assert any(line[:3] == ["missing:", "ref", "0-3."] for line in lines)


def test_ranks_of_a_group_that_are_missing_share_a_line_after_the_others(shown):
    answered = {"seconds": ([(name(1, size=9), "Idle", "", 5.0)],), "created": [name(0, size=9)]}
    lines = shown("group/policy", **answered)
    assert ["policy", "0,2-8", "-", "-", "-", "-", "-", "-"] in lines
    assert any(line[:3] == ["missing:", "policy", "0,2-8."] for line in lines)
    there, missing = shown("group/policy", "--output", "json", **answered)["items"]
    assert (there["ranks"], there["missing"], missing["ranks"], missing["missing"]) == ("1", "", "0,2-8", "0,2-8")


def test_a_name_with_more_ranks_than_a_group_can_have_costs_no_more(shown):
    (found,) = shown("ppo", "--output", "json", seconds=([],), created=[name(0, size=999_999_999)])["items"]
    assert (found["group"], found["missing"]) == ("policy", "")


@pytest.mark.parametrize("target", ["ppo", "group/policy"])
def test_a_rank_that_stops_counting_is_not_taken_for_one_that_never_counts(shown, target):
    later = [row(0, "Running", "step", 90.0), *SECONDS[1:5]]
    lines = shown(target, "--over", "30s", seconds=(SECONDS, later))
    assert any(line[:4] == ["counted", "nothing:", "policy", "1."] for line in lines)
    assert not any(line[:3] == ["not", "counted:", "policy"] for line in lines)
    items = shown(target, "--over", "30s", "--output", "json", seconds=(SECONDS, later))["items"]
    assert [each["stalled"] for each in items if each["stalled"]] == ["1"]


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
    assert answer["items"][0] == {**first, "missing": "", "uncounted": "", "stalled": ""}
    assert answer["devices"][0]["usedBytes"] == 41 * GIB


def test_a_device_whose_driver_reports_neither_utilisation_nor_memory_has_no_figures(shown):
    unknown = [("ppo-a", "2001", "MIG", None, None, None)]
    assert ["ppo-a", "2001", "MIG", "-", "-"] in shown("ppo", devices=unknown)
    (device,) = shown("ppo", "--output", "json", devices=unknown)["devices"]
    assert (device["utilization"], device["usedBytes"], device["totalBytes"]) == (None, None, None)


def test_where_there_are_no_ranks_it_is_said_who_knows_why(shown):
    of_pool, of_group = (" ".join(shown(target, seconds=([],))[-1]) for target in ("ppo", "group/policy"))
    assert of_pool.startswith("no group has ranks on the Ray cluster of pool ppo: workergroups status ")
    assert of_group == "group policy has no ranks: workergroups status policy says why"
