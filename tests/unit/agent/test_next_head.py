"""When a worker learns that another head has come."""

import socket
import threading
from contextlib import contextmanager, suppress

import pytest

from workergroups.waiting import poll
from workergroups_agent import next_head
from workergroups_agent.next_head import wait_for_next_head
from workergroups_common.backoff import Backoff


class Head:
    """A GCS at a port, with a session, which can go and come back."""

    def __init__(self):
        self.answers = []
        self.port = 0
        self.come("session_1")

    def ask(self):
        self.answers.append(self.session)
        return self.answers[-1]

    def drop(self):
        with suppress(BlockingIOError):  # there are no more
            while True:
                self._server.accept()[0].close()

    def go(self):
        self._server.close()

    def come(self, session):
        self.session = session
        self._server = socket.create_server(("127.0.0.1", self.port))
        self._server.setblocking(False)
        self.port = self._server.getsockname()[1]


@pytest.fixture
def head(monkeypatch):
    monkeypatch.setattr(next_head, "_PAUSES", Backoff(first=0.05, last=0.2))
    head = Head()
    yield head
    head.go()


@contextmanager
def waiting(head, ask=None):
    """A worker that waits for the next head; it must have come at the end."""
    arguments = (f"127.0.0.1:{head.port}", ask or head.ask)
    thread = threading.Thread(target=wait_for_next_head, args=arguments, daemon=True)
    thread.start()
    yield thread
    thread.join(10)
    assert not thread.is_alive()


def waits_on(thread):
    thread.join(0.5)
    return thread.is_alive()


def has_answered(head, session, times=1):
    return poll(lambda: head.answers.count(session) >= times, timeout=10)


def test_while_the_connection_lasts_nobody_is_asked(head):
    with waiting(head) as thread:
        assert has_answered(head, "session_1")
        assert waits_on(thread)
        assert head.answers == ["session_1"]
        head.go()
        assert waits_on(thread)
        head.come("session_2")


def test_a_head_that_ends_the_connection_and_has_the_same_session_is_no_other(head):
    with waiting(head) as thread:
        for times in (1, 2, 3):
            assert has_answered(head, "session_1", times)
            head.drop()
        assert has_answered(head, "session_1", 4)
        assert waits_on(thread)
        head.session = "session_2"
        head.drop()


def test_a_head_that_has_not_announced_its_session_is_asked_again(head):
    with waiting(head) as thread:
        assert has_answered(head, "session_1")
        head.session = None
        head.drop()
        assert has_answered(head, None, 2)
        assert waits_on(thread)
        head.session = "session_2"


def test_a_worker_learns_its_own_session_when_the_head_announces_it(head):
    head.session = None
    with waiting(head) as thread:
        assert has_answered(head, None)
        head.session = "session_1"
        assert has_answered(head, "session_1")
        assert waits_on(thread)
        head.session = "session_2"
        head.drop()


def test_a_head_that_comes_while_the_last_one_answers_is_noticed(head):
    asked, last_answer = threading.Event(), threading.Event()

    def answer_late():
        session = head.ask()
        asked.set()
        assert last_answer.wait(10)
        return session

    with waiting(head, answer_late):
        assert asked.wait(10)
        head.go()
        head.come("session_2")
        last_answer.set()
