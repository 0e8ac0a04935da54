"""Which of the paused ranks a debugger is led to, and in which order."""

from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from workergroups.debugger import prompt
from workergroups_cli import debug_command
from workergroups_cli.debug_command import Session
from workergroups_client.errors import NotFoundError, NotRunningError, UnreachableError
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
        look = self._looks.pop(0) if len(self._looks) > 1 else self._looks[0]
        if isinstance(look, Exception):
            raise look
        return look

    def tunnel(self, pause, *, local_port):
        self.led_to.append((pause.rank, pause.port, local_port))
        return nullcontext(SimpleNamespace(port=41213))


@pytest.fixture(autouse=True)
def no_time(monkeypatch):
    monkeypatch.setattr(prompt, "talk", lambda port, name: None)
    monkeypatch.setattr(debug_command.time, "sleep", lambda _: None)


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


def test_a_lost_connection_does_not_end_the_wait_for_the_next_pause(capsys):
    lost = UnreachableError("the connection to pod head was lost")
    follower = session(Group([], lost, [at(0, port=None)], lost, [at(0)]))
    follower.attend(follower.next_paused())
    assert follower._found.led_to == [(0, 5678, 0)]
    assert "to pause, until Ctrl-C: the connection to pod head was lost" in capsys.readouterr().err


def test_a_head_that_is_gone_ends_it():
    with pytest.raises(NotRunningError, match="it has ended"):
        session(Group([], NotRunningError("pod head not found: it has ended"))).next_paused()


def test_a_launch_json_that_cannot_be_read_is_left_and_the_configuration_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".vscode" / "launch.json").mkdir(parents=True)  # root can read every file
    session(Group([at(0)], []), to_prompt=False).attend(at(0))
    said = capsys.readouterr().err
    assert "launch.json was not changed, since it cannot be read as JSON ([Errno 21] Is a directory" in said
    assert '"port": 41213' in said


def test_an_editor_finds_the_next_rank_at_the_same_port(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    group = Group([at(0)], [], [at(1)], [])
    follower = session(group, to_prompt=False)
    follower.attend(at(0))
    follower.attend(at(1))
    assert group.led_to == [(0, 5678, 0), (1, 5679, 41213)]
