"""When the observer believes a head that has returned."""

import socket

import pytest

from workergroups_agent.observer.returned_head import AWAY_SECONDS, MOVED_SECONDS, SETTLE_SECONDS, ReturnedHead
from workergroups_agent.ray_state import RayState
from workergroups_agent.read_ray import is_named


class World:
    """Looks at the GCS every quarter of a second."""

    def __init__(self):
        self.now = 1000.0
        self.head = ReturnedHead(lambda: self.now, lambda: self.now)

    def look(self, head="first", *, is_continued=False, moved_at=None):
        self.now += 0.25
        return self.head.knows_its_ranks(RayState("s", head=head, is_continued=is_continued, moved_at=moved_at))

    def seconds_until_believed(self, **state):
        began = self.now
        while not self.look("second", is_continued=True, **state):
            assert self.now < began + 100
        return self.now - began


def test_the_first_head_of_a_session_is_believed_at_once():
    assert World().look()


def test_an_observer_that_connects_to_a_head_that_has_returned_waits():
    assert World().seconds_until_believed() == pytest.approx(SETTLE_SECONDS + 0.25)


def test_an_observer_that_outlives_the_head_waits_from_the_first_sight_of_the_next():
    world = World()
    assert world.look()
    world.now += AWAY_SECONDS
    assert world.seconds_until_believed() == pytest.approx(SETTLE_SECONDS + 0.25)


def test_it_waits_from_the_return_of_the_gcs_though_the_next_head_has_not_joined_yet():
    world = World()
    assert world.seconds_until_believed() > 0
    world.now += AWAY_SECONDS
    assert not world.look("second", is_continued=True)


def test_nodes_that_look_up_the_name_of_a_head_that_has_moved_need_longer():
    world = World()
    assert world.seconds_until_believed(moved_at=world.now) == pytest.approx(MOVED_SECONDS, abs=1)
    assert World().seconds_until_believed(moved_at=900.0) == pytest.approx(SETTLE_SECONDS + 0.25)


def test_a_name_that_stands_for_a_service_is_not_looked_up_again(monkeypatch):
    def resolve(host, _port):
        if host == "unknown":
            raise socket.gaierror
        return [(socket.AF_INET, 0, 0, "", ("10.0.0.1", 0))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    assert is_named("head.team.svc:6379", {"10.0.0.1", "10.0.0.2"})
    assert not is_named("head.team.svc:6379", {"10.1.0.1", "10.1.0.2"})
    assert is_named("unknown:6379", {"10.1.0.1"})
