"""Stacks and calls of ranks, those together that do the same."""

import json

import pytest
from typer.testing import CliRunner

from tests.unit.client.fake_cluster import FakeCluster, condition, group
from workergroups_cli import group_commands
from workergroups_cli.app import app
from workergroups_client.errors import NotFoundError
from workergroups_client.handles.group import Group
from workergroups_client.ray_cluster.activity import GroupActivity, stack_groups

RAY = "/usr/lib/python3.11/site-packages/ray/_private"


def stack(rank, line, function="step"):
    return (
        f"rank {rank} (pid 7{rank} on node 10.0.0.7):\n"
        "Current thread 0x00007f070f5edb80 (most recent call first):\n"
        f'  File "/code/trainer.py", line {line} in {function}\n'
        f'  File "{RAY}/function_manager.py", line 740 in actor_method_executor\n'
    )


STACKS = {0: stack(0, 41), 1: stack(1, 41), 2: stack(2, 17, "read_shard"), 3: stack(3, 41)}


def call(rank, method="step", state="running", seconds=60.0):
    return {"rank": rank, "method": method, "state": state, "seconds": seconds, "job_id": "02000000"}


CALLS = [
    *(call(rank, seconds=60.0 + rank) for rank in range(4)),
    *(call(rank, "save", "queued", 3.0) for rank in (0, 1)),
]


class FakeGroup:
    name = "ppo"

    def __init__(self, *_):
        pass

    def stacks(self):
        return STACKS

    def activity(self):
        return GroupActivity(CALLS, STACKS)


@pytest.fixture(autouse=True)
def _group(monkeypatch):
    monkeypatch.setattr(group_commands, "Group", FakeGroup)
    monkeypatch.setattr(group_commands, "Cluster", lambda *_: None)


def shown(*typed):
    result = CliRunner().invoke(app, typed)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_ranks_with_the_same_stack_are_together_and_suspects_first():
    assert [(group.who, group.suspect, group.where) for group in stack_groups(STACKS)] == [
        ("rank 2", True, "in trainer.py:17 in read_shard"),
        ("ranks 0-1,3", False, "in trainer.py:41 in step"),
    ]


def test_calls_are_together_by_place_and_queued_ones_last():
    groups = GroupActivity(CALLS, STACKS).groups
    assert [(group.ranks, group.method, group.state, group.seconds, group.suspect) for group in groups] == [
        ("2", "step", "running", 62.0, True),
        ("0-1,3", "step", "running", 63.0, False),
        ("0-1", "save", "queued", 3.0, False),
    ]
    assert [group.where for group in groups[1:]] == ["in trainer.py:41 in step", ""]


def test_calls_without_stacks_are_together_by_method():
    assert [group.ranks for group in GroupActivity(CALLS, {}).groups] == ["0-3", "0-1"]


def test_the_command_shows_each_stack_once():
    lines = shown("stacks", "ppo").splitlines()
    assert lines[0] == "suspect: rank 2 in trainer.py:17 in read_shard"
    assert lines[1].startswith("rank 2 (pid 72")
    assert "ranks 0-1,3 in trainer.py:41 in step" in lines
    assert sum("Current thread" in line for line in lines) == 2


def test_one_rank_is_shown_with_all_of_its_threads():
    assert shown("stacks", "ppo", "--rank", "1") == STACKS[1] + "\n"


def test_several_ranks_are_shown_with_all_of_their_threads():
    assert shown("stacks", "ppo", "--ranks", "2,1") == f"{STACKS[1]}\n{STACKS[2]}\n"


def test_scripts_get_the_groups_and_everything_else():
    answer = json.loads(shown("stacks", "ppo", "--output", "json"))
    assert answer["stacks"] == {str(rank): text for rank, text in STACKS.items()}
    assert (answer["kind"], answer["group"]) == ("StackList", "ppo")
    assert answer["items"][0] == {"ranks": "2", "suspect": True, "where": "in trainer.py:17 in read_shard", "first": 2}
    answer = json.loads(shown("calls", "ppo", "--output", "json"))
    assert answer["calls"] == [{("jobId" if key == "job_id" else key): each[key] for key in each} for each in CALLS]
    assert [(each["ranks"], each["jobId"]) for each in answer["items"]] == [
        ("2", "02000000"),
        ("0-1,3", "02000000"),
        ("0-1", "02000000"),
    ]


def test_the_command_lists_calls_by_place():
    lines = shown("calls", "ppo").splitlines()
    assert lines[0].split() == ["RANKS", "METHOD", "STATE", "FOR", "JOB", "SUSPECT", "WHERE"]
    assert lines[1].split()[:6] == ["2", "step", "running", "1m2s", "02000000", "suspect"]
    assert lines[2].split()[:6] == ["0-1,3", "step", "running", "1m3s", "02000000", "-"]


@pytest.mark.parametrize("question", [Group.stacks, Group.calls, Group.activity])
def test_a_group_without_ranks_is_not_asked_for_them(question):
    waits = condition("Ready", "False", "CodeMissing", "ConfigMap code is missing")
    created = condition("RanksCreated", "False", "CodeMissing", "0 of 2 ranks created")
    found = Group("ppo", FakeCluster(group("ppo", status={"conditions": [waits, created]})))
    with pytest.raises(NotFoundError, match=r"^group ppo has no ranks to ask: CodeMissing: ConfigMap code is missing$"):
        question(found)
