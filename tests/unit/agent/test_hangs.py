"""When a call hangs, and what is reported of it: by a clock, a GCS and calls that the test sets."""

import dataclasses
import json

import pytest

from tests.unit.agent.ray_world import KEY, PREPARED, RESERVED, SESSION, Store, group, plan, pool, rank, state
from workergroups.ray_private.calls_in_flight import CallInFlight, Reading
from workergroups.stacks.rank_stack import Doing, Frame, RankStack
from workergroups_agent import hang_records
from workergroups_agent.hang_records import HANGS, STACKS, HangName, HangRecords
from workergroups_agent.launch_state import Heard
from workergroups_agent.observer import hangs
from workergroups_agent.observer.hangs import HangWatch
from workergroups_agent.observer.report import report

LIMIT = 60
# From when the stacks are known until it is known which calls they show.
SETTLED = 3
# By the clock of the ranks' nodes.
TAKEN = 5e9
STEP = Frame("/code/trainer.py", 41, "step")
WAITING = RankStack(
    Doing.METHOD, (Frame("/usr/lib/python3.11/site-packages/torch/distributed/c10d.py", 9, "all_reduce"), STEP), 1
)
READING = RankStack(Doing.METHOD, (Frame("/code/data.py", 17, "read_shard"), STEP), 1)
IDLE = RankStack(Doing.NOTHING)
WHERE = {0: "n-b", 1: "n-b", 2: "n-c", 3: "n-c"}
RANKS = tuple(rank(number, node=node) for number, node in WHERE.items())


def call(number, task=None, method="step", *, has_begun=True, since=1e9):
    return CallInFlight(task or f"task-{number}", f"actor-{number}", method, since, has_begun)


CALLS = tuple(call(number) for number in WHERE)


class World:
    """Ray with a group of four ranks on two nodes, and the observer that watches it."""

    def __init__(self, monkeypatch, limit=LIMIT):
        self.now = 1000.0
        self.store = Store()
        self.calls = CALLS
        self.looks = 0
        self.slow, self.done_at = 0.0, None
        self.plan = plan(pool(), self.group(limit))
        self.state = state(*RESERVED, ranks=RANKS)
        self.watch = self.new_observer()
        monkeypatch.setattr(hang_records.key_value_store, "put", lambda *arguments: self.store.put(*arguments))

    @staticmethod
    def group(limit=LIMIT, **more):
        return group(**more).model_copy(update={"hang_seconds": limit})

    def new_observer(self):
        return HangWatch(HangRecords(self.store), self, clock=lambda: self.now)

    def begin(self):
        """Read the calls; a slow GCS needs some looks for it."""
        self.looks += 1
        self.reading = Reading(seconds=self.slow)
        if self.slow:
            self.done_at = self.now + self.slow
        else:
            self.finish()
        return self.reading

    def finish(self):
        if isinstance(self.calls, Exception):
            self.reading.error = self.calls
        else:
            self.reading.calls = list(self.calls)
        self.reading.is_done = True

    def look(self, after=0.0):
        """Look once a second until that much later; return what is reported of the group."""
        until = self.now + after
        while self.now + 1 <= until:
            self.now += 1
            if self.done_at is not None and self.now >= self.done_at:
                self.finish()
                self.done_at = None
            self.watch.look(self.plan, self.state)
        self.now = until
        return self.watch.look(self.plan, self.state).get(KEY)

    def late(self):
        """Look until the calls have run for as long as they may, and the stacks are asked for."""
        self.look()
        self.look(after=LIMIT)

    @property
    def asked(self):
        return [HangName.parse(key) for key in self.store.keys(HANGS)]

    def answer(self, stacks, nodes=("n-b", "n-c"), flights=()):
        """Write the stacks and the flight recorders of these ranks as tasks on the nodes do."""
        (name,) = self.asked
        for node in nodes:
            on_node = {f"actor-{number}": stack for number, stack in enumerate(stacks) if WHERE[number] == node}
            recorded = {f"actor-{number}": said for number, said in enumerate(flights) if WHERE[number] == node}
            hang_records.write_stacks(name.id, node, TAKEN, on_node, recorded)


@pytest.fixture
def world(monkeypatch):
    return World(monkeypatch)


def hanging(world):
    world.late()
    world.answer([WAITING, WAITING, READING, WAITING])
    found = world.look(after=SETTLED)
    assert found is not None
    return found


def answered_by_one_node(world):
    world.late()
    world.answer([WAITING, WAITING, READING, WAITING], nodes=["n-b"])


def test_a_call_that_is_late_is_reported_with_the_suspects_once_the_stacks_are_known(world):
    world.look()
    assert world.look(after=LIMIT - 1) is None
    assert world.asked == []
    assert world.look(after=1) is None, "the stacks are not known yet"
    world.answer([WAITING, WAITING, READING, WAITING])
    found = world.look(after=SETTLED)
    assert (found.method, found.ranks, found.suspects, found.pod) == ("step", "0-3", "2", "p-worker-c")
    assert found.since.timestamp() == 1e9
    assert found.message == (
        "call `step` has run for more than 60 s on ranks 0-3; ranks 0-1,3 wait in torch.distributed.all_reduce "
        "(trainer.py:41 in step); suspect: rank 2 in data.py:17 in read_shard"
    )


def test_the_groups_report_has_it(world):
    found = hanging(world)
    said = report(world.plan, world.state, {"uid-g": PREPARED}, Heard({}), {}, {KEY: found}, {}).groups["g"].report
    assert said.hang == found
    other = plan(pool(), world.group(incarnation=2))
    assert report(other, world.state, {}, Heard({}), {}, {KEY: found}, {}).groups["g"].report.hang is None


def test_a_report_does_not_change_while_the_calls_hang(world):
    found, written = hanging(world), dict(world.store.values)
    assert world.look(after=600) == found
    assert world.store.values == written


def test_a_node_that_does_not_answer_is_reported_without_its_stacks(world):
    answered_by_one_node(world)
    assert world.look(after=hangs.STACKS_SECONDS - 1) is None
    found = world.look(after=1)
    assert found.suspects == "2-3"
    assert "ranks 2-3 without stacks (its node has not answered)" in found.message


def test_a_node_that_answers_late_still_tells_who_is_suspect(world):
    answered_by_one_node(world)
    assert world.look(after=hangs.STACKS_SECONDS).suspects == "2-3"
    assert world.look(after=20).suspects == "2-3"
    world.answer([WAITING, WAITING, READING, WAITING], nodes=["n-c"])
    found = world.look(after=SETTLED)
    assert found.suspects == "2"
    assert found.message.endswith("suspect: rank 2 in data.py:17 in read_shard")
    written = dict(world.store.values)
    assert world.look(after=600) == found
    assert world.store.values == written


def test_a_node_that_never_answers_is_asked_for_two_minutes(world):
    answered_by_one_node(world)
    found = world.look(after=hangs.LATE_SECONDS + 1)
    world.answer([WAITING, WAITING, READING, WAITING], nodes=["n-c"])
    assert world.look(after=60) == found


def test_calls_that_return_are_no_hang_any_more_and_leave_no_record(world):
    hanging(world)
    world.calls = ()
    assert world.look(after=1) is None
    assert world.store.values == {}


def test_if_some_calls_return_the_stacks_are_taken_again(world):
    found = hanging(world)
    world.calls = CALLS[2:]
    assert world.look(after=5) == found
    world.look(after=6)
    world.answer([IDLE, IDLE, READING, WAITING])
    again = world.look(after=SETTLED)
    assert (again.ranks, again.suspects) == ("2-3", "0-2")
    assert len(world.store.keys(STACKS)) == 2, "the stacks of before are gone"


def test_calls_that_return_in_time_never_hang(world):
    for number in range(2 * LIMIT):
        world.calls = [call(0, task=f"task-{number}")]
        assert world.look(after=1) is None
    assert world.asked == []


def test_a_call_counts_from_when_it_is_sent_if_its_rank_runs_no_other(world):
    world.calls = [call(0, has_begun=False)]
    world.late()
    assert len(world.asked) == 1


def test_a_queued_call_counts_from_when_its_turn_comes(world):
    world.look()
    for number in range(LIMIT):
        world.calls = [call(0, task=f"task-{number}"), call(0, task="queued", has_begun=False, since=5.0)]
        world.look(after=1)
    assert world.asked == []


def test_while_a_rank_is_paused_no_call_of_the_group_hangs(world):
    hanging(world)
    running, world.state = world.state, state(*RESERVED, ranks=RANKS, pauses=[1])
    assert world.look(after=1) is None
    assert world.look(after=3 * LIMIT) is None
    world.state = running
    assert world.look(after=LIMIT - 1) is None
    assert world.asked == [], "it counts from the end of the pause"
    world.look(after=2)
    assert len(world.asked) == 1


def test_calls_of_dead_ranks_do_not_count(world):
    world.state = state(*RESERVED, ranks=[dataclasses.replace(rank(0, state="DEAD"), actor_id="actor-0")])
    world.look()
    assert world.look(after=2 * LIMIT) is None
    assert world.asked == []


def test_a_call_that_ray_only_believes_to_run_is_no_hang(world):
    world.calls = [call(0)]
    world.late()
    world.answer([IDLE, IDLE, IDLE, IDLE])
    assert world.look(after=1) is None
    assert world.look(after=3 * LIMIT) is None
    assert world.store.values == {}


@pytest.mark.parametrize("live", ["step", "save"])
def test_a_call_that_ray_only_believes_to_run_is_no_hang_while_its_rank_runs_others(world, live):
    world.calls = [call(2, "stale")]
    world.late()
    assert len(world.asked) == 1
    world.answer([IDLE, IDLE, READING, IDLE])
    # Ray hears only now of the call that the stack shows.
    world.look(after=1)
    world.calls = [call(2, "stale"), call(2, "live", method=live, since=2e9)]
    assert world.look(after=SETTLED) is None
    assert world.look(after=LIMIT - 10) is None
    assert world.store.values == {}


def test_a_call_that_began_after_the_stacks_were_taken_says_nothing_about_those_before(world):
    world.calls = [call(2)]
    world.late()
    world.answer([IDLE, IDLE, READING, IDLE])
    # The rank runs it in another thread.
    world.calls = [call(2), call(2, "later", since=TAKEN + 1), call(0, "other", since=TAKEN + 1)]
    assert world.look(after=SETTLED).ranks == "2"
    world.calls = [call(0, "other", since=TAKEN + 1)]
    world.look(after=LIMIT)
    assert len(world.asked) == 1, "a call that began later counts like any other"


def test_of_a_rank_with_threads_as_many_calls_hang_as_threads_are_in_methods(world):
    world.calls = [call(2, "stale"), call(2, "one", since=2e9), call(2, "two", since=3e9)]
    world.late()
    world.answer([IDLE, IDLE, dataclasses.replace(READING, methods=2), IDLE])
    found = world.look(after=SETTLED)
    assert found.ranks == "2"
    (name,) = world.asked
    assert HangRecords(world.store).read(name).calls.keys() == {"one", "two"}


def test_an_asynchronous_rank_is_as_ray_says(world):
    world.calls = [call(0)]
    world.late()
    world.answer([RankStack(Doing.ASYNC)] * 4)
    found = world.look(after=SETTLED)
    assert (found.ranks, found.suspects) == ("0", "")


def test_the_next_observer_continues_with_what_was_found(world):
    found = hanging(world)
    world.watch = world.new_observer()
    assert world.look() == found
    assert world.look(after=600) == found
    world.watch = world.new_observer()
    world.calls = ()
    assert world.look(after=1) is None
    assert world.store.values == {}


@pytest.mark.parametrize("limit", [None, LIMIT, 10 * LIMIT])
def test_the_oldest_call_is_told_after_a_minute_with_its_rank_until_it_returns(monkeypatch, limit):
    world = World(monkeypatch, limit)
    world.calls = (call(1, since=1.1e9), call(2, since=1e9, method="Critic.value"), call(3, since=1e9 + 1))
    world.look(after=45)
    assert world.watch.oldest == {}
    world.look(after=50)
    said = report(world.plan, world.state, {}, Heard({}), {}, {}, world.watch.oldest).groups["g"].report.oldest_call
    assert (said.method, said.rank, said.since.timestamp()) == ("Critic.value", 2, 1e9)
    world.calls = (call(1, since=1.1e9), call(0, "new", since=1.2e9))
    world.look(after=30)
    assert world.watch.oldest[KEY].rank == 1
    world.calls = ()
    world.look(after=30)
    assert world.watch.oldest == {}


def test_nothing_is_said_of_calls_that_cannot_be_read_or_of_groups_that_are_gone(world):
    world.look(after=LIMIT + 30)
    assert world.watch.oldest[KEY].method == "step"
    known, world.calls = world.calls, RuntimeError("no such service")
    world.look(after=30)
    assert world.watch.oldest == {}
    world.calls = known
    world.look(after=30)
    assert KEY in world.watch.oldest
    world.plan = plan(pool())
    world.look()
    assert world.watch.oldest == {}


def test_calls_are_looked_for_rarely_where_none_can_hang(monkeypatch):
    world = World(monkeypatch, limit=None)
    world.look(after=600)
    assert 30 < world.looks <= 41
    world.slow = 0.5
    world.look(after=600)
    assert world.looks <= 41 + 22


def test_an_observer_that_ends_before_the_stacks_are_known_loses_nothing(world):
    world.late()
    (asked,) = world.asked
    world.watch = world.new_observer()
    assert world.look() is None
    assert world.asked == [asked]
    world.answer([WAITING, WAITING, READING, WAITING])
    assert world.look(after=SETTLED).suspects == "2"


FORGED = {
    "method": "step",
    "since": "2026-01-01T00:00:00Z",
    "calls": {"task-0": 0},
    "report": {"method": "step", "since": "2026-01-01T00:00:00Z", "ranks": "0", "message": "mine"},
}


@pytest.mark.parametrize(
    "forged",
    [
        {"calls": {"task-0": 4242}},
        {"calls": {"task-0": -1}},
        {"birth": 7},
        {"report": FORGED["report"] | {"ranks": "4242-4250"}},
        {"report": FORGED["report"] | {"ranks": "0", "suspects": "3-4"}},
        {"report": FORGED["report"] | {"ranks": "all of them"}},
        {"report": FORGED["report"] | {"birth": 7}},
        {"report": FORGED["report"] | {"since": "2026-01-01T00:00:00"}},
    ],
    ids=str,
)
def test_a_hang_of_ranks_that_do_not_exist_is_not_believed(world, forged):
    """A driver that has Ray's token can write such records."""
    world.store.put(HANGS, "uid-g/1/forged", json.dumps(FORGED | forged).encode())
    assert world.look() is None
    assert world.asked == []


def test_a_hang_that_the_calls_do_not_bear_out_ends_at_the_first_look(world):
    world.calls = ()
    world.store.put(HANGS, "uid-g/1/forged", json.dumps(FORGED).encode())
    assert world.look() is None


@pytest.mark.parametrize(
    "value",
    [b"", b"\xff\xfe", b"[" * 100_000, b'{"method": 7}', b'{"method": "x", "since": "?", "calls": {"a": "b"}}'],
)
def test_nonsense_in_the_records_is_ignored_and_removed(world, value):
    for key in ("uid-g/1/id", "uid-g", "", "uid-g/1/", "uid-g/x/y", "uid-g/1/" + "x" * 100_000):
        world.store.put(HANGS, key, value)
    world.store.put(STACKS, "id/n-b", value)
    assert world.look() is None
    assert world.store.values == {}


@pytest.mark.parametrize(
    "value", [b"{}", b'{"taken": 1, "ranks": {"actor-2": {"doing": "Sleeping"}}}', b"x" * 5_000_000]
)
def test_stacks_that_are_nonsense_are_as_good_as_none(world, value):
    world.late()
    world.answer([WAITING, WAITING, READING, WAITING])
    world.store.put(STACKS, f"{world.asked[0].id}/n-c", value)
    found = world.look(after=hangs.STACKS_SECONDS)
    assert found.suspects == "2-3"


def flight(number, last, completed):
    joined = {"last": last, "completed": completed, "name": "nccl:all_reduce", "members": [0, 1, 2, 3]}
    return {"rank": number, "joined": {"0:default_pg": joined}}


def test_the_flight_recorder_knows_better_than_stacks_who_is_missing(world):
    world.late()
    # All wait in a collective, but rank 1 in an earlier one.
    world.answer([WAITING] * 4, flights=[flight(0, 7, 6), flight(1, 6, 6), flight(2, 7, 6), flight(3, 7, 6)])
    found = world.look(after=SETTLED)
    assert found.suspects == "1"
    assert found.message.endswith(
        "suspect: rank 1, by torch's flight recorder: it has not joined nccl:all_reduce, collective 7 of process group "
        "default_pg"
    )


def test_flight_recorders_that_are_nonsense_are_as_good_as_none(world):
    world.late()
    world.answer([WAITING, WAITING, READING, WAITING], flights=[{"rank": "x"}, None, {"rank": 2, "joined": 7}, []])
    assert world.look(after=SETTLED).suspects == "2"


def test_odd_names_make_a_short_and_plain_message(world):
    world.calls = [call(number, method="s\nt\ud800ep" * 1000, since=1e300) for number in WHERE]
    world.late()
    odd = RankStack(Doing.METHOD, (Frame("/code/" + "x" * 150 + "\n", -1, "\u202e" * 150),), 1)
    world.answer([odd, odd, odd, WAITING])
    found = world.look(after=SETTLED)
    assert len(found.message) < 1000
    assert "\n" not in found.message + found.method
    assert "\u202e" not in found.message


def test_a_ray_that_does_not_answer_changes_nothing_and_is_not_asked_all_the_time(world):
    found = hanging(world)
    world.calls = ConnectionError()
    looks = world.looks
    assert world.look(after=60) == found
    assert world.looks - looks <= 60 / hangs.RETRY_SECONDS + 1


def test_a_gcs_with_many_events_is_asked_less_often_until_a_call_is_nearly_late(world):
    world.slow = 1.0
    world.look(after=LIMIT - hangs.SOON_SECONDS)
    assert world.looks <= 4
    looks = world.looks
    world.look(after=30)
    assert world.looks - looks >= 5
    assert len(world.asked) == 1


def test_without_a_limit_no_call_hangs(monkeypatch):
    world = World(monkeypatch, limit=None)
    assert world.look(after=600) is None
    assert world.asked == []
    assert world.store.values == {}


def test_a_limit_that_is_taken_away_ends_a_hang(world):
    hanging(world)
    world.plan = plan(pool(), world.group(None))
    assert world.look(after=1) is None
    assert world.store.values == {}


def test_ranks_of_another_session_are_not_watched(world):
    world.plan = plan(pool(), world.group(session=f"not-{SESSION}"))
    assert world.look(after=600) is None
    assert world.looks == 0
