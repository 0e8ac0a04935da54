"""Heartbeats, timed by a clock of the test's own."""

import json

import pytest

from tests.unit.operator.make import KEY
from workergroups_api.names import DOUBTS_ANNOTATION, HEAD_ANNOTATION, SESSION_ANNOTATION
from workergroups_api.vouching import MAX_OBJECTS, doubt
from workergroups_operator.heartbeats import Heartbeats
from workergroups_operator.timings import Timings

HEAD = "head-1"


class World:
    """An agent, and the operator's memory of it."""

    def __init__(self):
        self.now = 1000.0
        self.beats = Heartbeats(Timings(), lambda: self.now)
        self.count = 0

    def beat(self, session="s", doubts=None):
        self.count += 1
        spec = {"renewTime": str(self.count)} | ({"holderIdentity": session} if session else {})
        annotations = {DOUBTS_ANNOTATION: json.dumps(doubts)} if doubts else {}
        return self.beats.note(KEY, {"metadata": {"annotations": annotations}, "spec": spec})

    def heartbeat(self, after=0.0, head=HEAD, has_pod=True, is_empty=False):
        self.now += after
        return self.beats.update(KEY, head, has_pod=has_pod, is_empty=is_empty)


@pytest.fixture
def world():
    world = World()
    world.beat()
    world.beat()
    return world


def test_an_agent_that_renews_is_there(world):
    heartbeat = world.heartbeat(after=5)
    assert (heartbeat.session, heartbeat.is_silent, heartbeat.away_seconds) == ("s", False, 0)


def test_the_silence_of_an_agent_ends_with_its_next_renewal(world):
    world.heartbeat(after=4.0)
    assert world.beats.silences() == {KEY: 4.0}
    world.beat()
    assert world.beats.silences() == {KEY: 0.0}
    world.beats.forget(KEY)
    assert world.beats.silences() == {}


def test_a_late_agent_is_silent_only_at_the_second_look(world):
    assert world.beats.late() == []
    world.now += 6
    assert world.beats.late() == [KEY]
    assert world.beats.late() == [], "it is called late once"
    first = world.heartbeat()
    assert not first.is_silent
    assert first.look_again_seconds < 5
    assert world.heartbeat(after=first.look_again_seconds).is_silent


def test_an_agent_that_could_not_reach_the_api_server_either_gets_time_to_renew(world):
    assert not world.heartbeat(after=300).is_silent
    world.now += 2
    assert world.beat(), "somebody waits for it"
    assert not world.heartbeat(after=3).is_silent


def test_after_a_start_of_this_process_an_agent_has_to_show_itself_soon():
    world = World()
    world.beat()
    assert not world.heartbeat().is_silent
    assert world.heartbeat(after=4.6).is_silent
    world.beat()
    assert not world.heartbeat().is_silent


def test_an_agent_without_a_pod_is_away_until_a_renewal_after_that(world):
    assert world.heartbeat(has_pod=False).away_seconds > 0
    assert world.heartbeat(after=1).away_seconds == 1, "a new pod is no sign of it"
    world.beat()
    assert world.heartbeat().away_seconds == 0


def test_an_agent_that_is_not_connected_is_away(world):
    assert world.beat(session=None)
    assert world.heartbeat().away_seconds > 0
    assert world.heartbeat(after=2).away_seconds == 2
    assert world.beat()
    assert world.heartbeat().away_seconds == 0


def test_with_a_new_head_only_what_is_seen_from_then_on_counts(world):
    assert world.heartbeat(head="head-2").seen_with_head_seconds == 0
    world.heartbeat(after=1, head="head-3")
    assert world.heartbeat(head="head-3").seen_with_head_seconds is None
    world.now += 5
    world.beat()
    assert world.heartbeat(head="head-3").seen_with_head_seconds == 5


def test_a_lease_that_is_gone_is_no_sign(world):
    world.beats.note(KEY, None)
    assert world.heartbeat().session is None


def test_who_saw_the_cluster_begin_knows_its_first_head(world):
    assert world.heartbeat(head=None, has_pod=False, is_empty=True).is_of_first_head
    assert world.heartbeat(head=None).is_of_first_head
    assert world.heartbeat(head="head-1").is_of_first_head
    assert not world.heartbeat(head="head-2").is_of_first_head
    assert not world.heartbeat(head="head-1").is_of_first_head


def test_who_came_later_does_not_know_which_heads_there_were(world):
    assert not world.heartbeat(head=None).is_of_first_head
    assert not world.heartbeat(head="head-1").is_of_first_head


def test_the_first_renewal_that_is_surely_about_another_head_is_news(world):
    world.beat()
    world.heartbeat(head="head-1")
    world.heartbeat(after=2, head="head-2")
    news = []
    for _ in range(4):
        world.now += 2.5
        news.append(world.beat())
    assert news == [False, True, False, False]


def test_an_object_that_comes_into_doubt_or_out_of_it_is_news(world):
    assert world.beat(doubts={"u": "403"})
    assert world.heartbeat().doubts == {"u": "403"}
    assert not world.beat(doubts={"u": "in other words"})
    assert world.beat(doubts={"u": "403", "v": "500"})
    assert world.beat()
    assert world.heartbeat().doubts == {}


def test_only_a_holder_takes_a_doubt_back(world):
    world.beat(doubts={"u": "403"})
    world.beat(session=None)
    assert world.heartbeat().doubts == {"u": "403"}
    world.beats.note(KEY, None)
    assert world.heartbeat().doubts == {"u": "403"}
    world.beat()
    assert world.heartbeat().doubts == {}


def test_what_somebody_writes_into_a_lease_again_and_again_takes_no_more_memory(world):
    world.beat(session="x" * 10_000)
    assert world.heartbeat().session is None
    for number in range(100):
        world.beat(session=None, doubts={f"{number}{'u' * 10_000}": "403"})
    assert len(world.heartbeat().doubts) <= MAX_OBJECTS
    assert doubt("any", world.heartbeat().doubts).startswith("this is so for more than 20 objects")


def reading(version, count, **spec):
    return {"metadata": {"resourceVersion": version}, "spec": {"renewTime": str(count)} | spec}


def test_a_reading_that_another_one_has_overtaken_is_no_sign(world):
    """A reconcile reads the Lease of an agent that is about to end, and takes note of it when the next began."""
    before = reading("99", 10, holderIdentity="old")
    world.beats.note(KEY, before)
    assert world.heartbeat(has_pod=False).away_seconds > 0
    assert world.beats.note(KEY, reading("100", 11))
    assert not world.beats.note(KEY, before)
    heartbeat = world.heartbeat(after=1)
    assert (heartbeat.session, heartbeat.away_seconds) == (None, 1)
    assert world.beats.note(KEY, reading("101", 12, holderIdentity="new"))
    assert (world.heartbeat().session, world.heartbeat().away_seconds) == ("new", 0)


def test_a_lease_of_a_backup_counts_after_a_while(world):
    world.beats.note(KEY, reading("99", 10, holderIdentity="s"))
    assert not world.beats.note(KEY, reading("50", 5, holderIdentity="t"))
    world.now += 31
    assert world.beats.note(KEY, reading("51", 6, holderIdentity="t"))
    assert world.beats.note(KEY, reading("52", 7, holderIdentity="u"))
    assert world.heartbeat().session == "u"


def test_a_lease_whose_version_is_no_number_counts_as_it_comes(world):
    world.beats.note(KEY, reading("b", 10, holderIdentity="x"))
    world.beats.note(KEY, reading("a", 11, holderIdentity="y"))
    assert world.heartbeat().session == "y"


def test_what_no_agent_would_write_into_a_lease_is_not_kept(world):
    """The plan repeats the session for each group, and the agent's token may renew the Lease with any holder."""
    world.beat(session="s" * 1_000_000)
    assert world.heartbeat().session is None
    noted = {HEAD_ANNOTATION: "h", SESSION_ANNOTATION: "s" * 100_000}
    world.beats.note(KEY, {"metadata": {"annotations": noted}, "spec": {}})
    assert world.heartbeat().known is None
