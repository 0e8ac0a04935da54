"""Which of the paused ranks a debugger is led to, and in which order."""

from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from workergroups.debugger import prompt
from workergroups_api.report import RankPause
from workergroups_cli import debug_command
from workergroups_cli.debug_command import Session
from workergroups_client.errors import NotFoundError

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
PAUSE = RankPause(rank=0, where="t.py:1 in f", since=NOON, pod="pod-0", directory="/code", port=5678)


class Group:
    """A group whose pauses are these, one list for each time that it is asked."""

    name = "ppo"

    def __init__(self, *looks):
        self._looks, self.led_to = list(looks), []

    def pauses(self):
        return self._looks.pop(0) if len(self._looks) > 1 else self._looks[0]

    def tunnel(self, pause, *, local_port):
        self.led_to.append((pause.rank, pause.port, local_port))
        return nullcontext(SimpleNamespace(port=41213))


@pytest.fixture(autouse=True)
def no_time(monkeypatch):
    monkeypatch.setattr(debug_command, "_LOOK_SECONDS", 0)
    monkeypatch.setattr(prompt, "talk", lambda port, name: None)


def at(rank, **more):
    return PAUSE.model_copy(update={"rank": rank, "port": 5678 + rank, **more})


def session(group, rank=None, to_prompt=True):
    return Session(group, rank, to_prompt=to_prompt, port=0)


def test_the_first_rank_that_has_no_debugger_is_chosen():
    assert session(Group([at(0, attached=True), at(1), at(2)])).paused_now().rank == 1
    assert session(Group([at(1), at(2)]), rank=2).paused_now().rank == 2


@pytest.mark.parametrize(
    ("pauses", "rank", "said"),
    [
        ([], None, "no rank of group ppo waits for a debugger; paused: none"),
        ([at(3)], 2, "rank 2 of group ppo does not wait for a debugger; paused: 3"),
        ([at(2, attached=True)], 2, "rank 2 of group ppo does not wait for a debugger; paused: 2 (attached)"),
    ],
)
def test_where_nobody_waits_it_says_who_does(pauses, rank, said):
    with pytest.raises(NotFoundError, match="^" + said.replace("(", r"\(").replace(")", r"\)") + "$"):
        session(Group(pauses), rank).paused_now()


def test_it_goes_from_pause_to_pause_also_of_one_rank_and_to_none_twice():
    again = at(0, since=NOON + timedelta(milliseconds=3))
    group = Group([at(0), at(1)], [at(0), at(1)], [at(0)], [], [again])
    follower = session(group)
    follower.attend(follower.paused_now())
    for _ in range(2):
        follower.attend(follower.next_paused())
    assert [rank for rank, _, _ in group.led_to] == [0, 1, 0]


def test_it_waits_a_moment_for_debugpy_to_listen():
    group = Group([at(0, port=None)], [at(0, port=None)], [at(0)])
    follower = session(group)
    follower.attend(follower.paused_now())
    assert group.led_to == [(0, 5678, 0)]


def test_an_editor_finds_the_next_rank_at_the_same_port(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    group = Group([at(0)], [], [at(1)], [])
    follower = session(group, to_prompt=False)
    follower.attend(at(0))
    follower.attend(at(1))
    assert group.led_to == [(0, 5678, 0), (1, 5679, 41213)]
