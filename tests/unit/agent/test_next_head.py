"""When a worker learns that another head has come."""

import socket
import threading
from contextlib import contextmanager

import pytest

from workergroups_agent import next_head
from workergroups_agent.next_head import wait_for_next_head
from workergroups_common.backoff import Backoff


class Head:
    """A GCS at a port, with a session, which can go and come back."""

    def __init__(self):
        self.questions = 0
        self.session = "session_1"
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self._connections = []
        self._accept()

    def ask(self):
        self.questions += 1
        return self.session

    def drop(self):
        while self._connections:
            self._connections.pop().close()

    def go(self):
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._thread.join(5)
        self.drop()

    def come(self, session):
        self.session = session
        self._server = socket.create_server(("127.0.0.1", self.port))
        self._accept()

    def _accept(self):
        def accept(server):
            while True:
                try:
                    self._connections.append(server.accept()[0])
                except OSError:
                    return

        self._thread = threading.Thread(target=accept, args=[self._server], daemon=True)
        self._thread.start()


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


def waits_on(thread, seconds=0.5):
    thread.join(seconds)
    return thread.is_alive()


def test_while_the_connection_lasts_nobody_is_asked(head):
    with waiting(head) as thread:
        assert waits_on(thread)
        assert head.questions == 1
        head.go()
        assert waits_on(thread)
        head.come("session_2")


def test_a_head_that_ends_the_connection_and_has_the_same_session_is_no_other(head):
    with waiting(head) as thread:
        for _ in range(3):
            assert waits_on(thread, 0.2)
            head.drop()
        assert waits_on(thread)
        head.session = "session_2"
        head.drop()


def test_a_head_that_has_not_announced_its_session_is_asked_again(head):
    with waiting(head) as thread:
        assert waits_on(thread, 0.2)
        head.session = None
        head.drop()
        assert waits_on(thread)
        head.session = "session_2"


def test_a_worker_learns_its_own_session_when_the_head_announces_it(head):
    head.session = None
    with waiting(head) as thread:
        assert waits_on(thread, 0.2)
        head.session = "session_1"
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
