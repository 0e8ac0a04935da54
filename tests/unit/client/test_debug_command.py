"""Which of the paused ranks a debugger is led to, and in which order."""

from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from workergroups.debugger import prompt
from workergroups_cli.debug_command import Session
from workergroups_client.errors import NotFoundError
from workergroups_client.pods.pauses import PausedProcess

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
PAUSE = PausedProcess(
    who="rank 0",
    rank=0,
    job="",
    pod="pod-0",
    where="t.py:1 in f",
    directory="/code",
    port=5678,
    since=NOON,
    attached=False,
)


class Group:
    """A group whose pauses are these, one list for each time that it is asked."""

    name, noun = "group ppo", "rank"

    def __init__(self, *looks):
        self._looks, self.led_to = list(looks), []

    def now(self):
        return self.changed()

    def changed(self):
        return self._looks.pop(0) if len(self._looks) > 1 else self._looks[0]

    def tunnel(self, pause, *, local_port):
        self.led_to.append((pause.rank, pause.port, local_port))
        return nullcontext(SimpleNamespace(port=41213))


@pytest.fixture(autouse=True)
def no_time(monkeypatch):
    monkeypatch.setattr(prompt, "talk", lambda port, name: None)


def at(rank, **more):
    return replace(PAUSE, **{"who": f"rank {rank}", "rank": rank, "port": 5678 + rank, **more})


def session(group, ranks=None, to_prompt=True):
    return Session(group, ranks, to_prompt=to_prompt, port=0)


def test_the_first_rank_that_has_no_debugger_is_chosen():
    assert session(Group([at(0, attached=True), at(1), at(2)])).paused_now().rank == 1
    assert session(Group([at(1), at(2)]), ranks="2").paused_now().rank == 2
    assert session(Group([at(1), at(2), at(7)]), ranks="2-6,7").paused_now().rank == 2


@pytest.mark.parametrize(
    ("pauses", "rank", "said"),
    [
        ([], None, "no rank of group ppo waits for a debugger; paused: none"),
        ([at(3)], "2", "rank 2 of group ppo does not wait for a debugger; paused: rank 3"),
        ([at(3)], "0-1,5", "rank 0-1 or 5 of group ppo does not wait for a debugger; paused: rank 3"),
        ([at(2, attached=True)], "2", "rank 2 of group ppo does not wait for a debugger; paused: rank 2 (attached)"),
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
