"""`calls` where Ray knows of none: ranks that do not answer are named, since a stopped rank reports no calls."""

import pytest
from typer.testing import CliRunner

from tests.unit.client.fake_cluster import FakeCluster
from workergroups_cli import group_commands
from workergroups_cli.app import app
from workergroups_client.ray_cluster.activity import GroupActivity, silent_ranks

RUNS = 'Thread 0x1 (most recent call first):\n  File "/code/trainer.py", line 3 in step\n'
STOPPED = "no stacks within 3 s: its process is stopped"


@pytest.fixture
def calls(monkeypatch):
    """What `calls` prints if the group has these calls and stacks."""

    def run(stacks):
        class Group:
            def __init__(self, name, cluster):
                self.name = name

            def activity(self):
                return GroupActivity([], stacks)

        monkeypatch.setattr(group_commands, "Group", Group)
        monkeypatch.setattr(group_commands, "Cluster", lambda *_: FakeCluster())
        done = CliRunner().invoke(app, ["calls", "trainer"])
        assert done.exit_code == 0
        return done.output

    return run


def test_a_stopped_rank_is_named_with_the_way_out(calls):
    said = calls({0: RUNS, 1: STOPPED, 2: STOPPED})
    assert "group trainer has no calls in flight" in said
    assert "without an answer: rank 1-2; a call of it may hang: workergroups stacks trainer -n team" in said


def test_where_all_ranks_answer_there_is_no_more_to_say(calls):
    said = calls({0: RUNS, 1: RUNS})
    assert "group trainer has no calls in flight" in said
    assert "without an answer" not in said


def test_a_rank_without_a_frame_of_its_own_answers():
    idle = 'Thread 0x1 (most recent call first):\n  File "/site-packages/ray/_private/worker.py", line 9 in main_loop\n'
    assert silent_ranks({0: idle, 1: STOPPED}) == "1"
