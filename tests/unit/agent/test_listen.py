"""The listener reads what there is, at a bounded price, and says when Ray's head is gone."""

import queue
import threading

import pytest

from workergroups_agent.observer import printed_lines
from workergroups_agent.observer.printed_lines import GAP, Listener, Tails

RANK = ("10.0.0.1", 7)
NOTHING = {"ip": "", "pid": "", "lines": []}
SECONDS = 20


def batch(*lines, pid="7"):
    return {"ip": RANK[0], "pid": pid, "lines": list(lines)}


class Ray:
    """A log channel that has these batches, or what a function says, and then nothing more."""

    def __init__(self, monkeypatch, *batches):
        self.batches = queue.SimpleQueue()
        for each in batches:
            self.batches.put(each)
        self.subscriptions, self.lost = 0, threading.Event()
        monkeypatch.setattr(printed_lines, "subscribe_to_logs", self.subscribe)
        self.tails = Tails()
        self.tails.claim({RANK})
        self.listener = Listener("address", self.tails, self.lost.set)
        self.listener.start()

    def subscribe(self, _address):
        self.subscriptions += 1
        return self

    last_batch_size = 1000

    def poll(self):
        following = self.batches.get()
        if isinstance(following, Exception):
            raise following
        return following

    def close(self):
        if self.listener._ends.is_set():
            self.batches.put(NOTHING)

    def until_printed(self, line):
        for _ in range(SECONDS * 100):
            text = self.tails.text(RANK).decode()
            if f"{line}\n" in text:
                return text
            threading.Event().wait(0.01)
        raise AssertionError(text[-200:])


def test_lines_of_workers_are_read_and_others_are_not(monkeypatch):
    ray = Ray(
        monkeypatch, batch("of the raylet", pid="raylet"), batch("one", "two"), batch("of 8", pid="8"), batch("end")
    )
    assert ray.until_printed("end") == "one\ntwo\nend\n"
    assert not ray.lost.is_set()


def test_the_memory_of_long_lines_is_given_back(monkeypatch):
    given_back = threading.Event()
    monkeypatch.setattr(printed_lines, "_give_memory_back", given_back.set)
    ray = Ray(monkeypatch, batch("short"))
    ray.until_printed("short")
    assert not given_back.is_set()
    ray.batches.put(batch("x" * 2_000_000))
    assert given_back.wait(SECONDS)


@pytest.mark.parametrize("failure", [NOTHING, RuntimeError("a user's secret")], ids=["unavailable", "error"])
def test_a_head_that_does_not_answer_is_reported_and_asked_again(monkeypatch, caplog, failure):
    monkeypatch.setattr(printed_lines, "RETRY_SECONDS", 0.01)
    ray = Ray(monkeypatch, batch("before"), failure, batch("after"))
    assert ray.until_printed("after") == f"before\n{GAP}\nafter\n"
    assert ray.lost.is_set()
    assert ray.subscriptions == 2
    assert "secret" not in caplog.text


def test_a_flood_is_read_for_a_part_of_the_time_and_nobody_is_subscribed_for_the_rest(monkeypatch):
    # Without pauses, in which a window could pass with its budget unspent.
    monkeypatch.setattr(printed_lines, "PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(printed_lines, "WINDOW_SECONDS", 0.05)
    monkeypatch.setattr(printed_lines, "BUDGET_SECONDS", 0.002)
    ray = Ray(monkeypatch, *[batch("x")] * 20_000, batch("end"))
    text = ray.until_printed("end")
    assert text.count(GAP) == ray.subscriptions - 1 > 0
    assert not ray.lost.is_set()


def test_a_listener_that_is_stopped_ends_and_has_lost_nothing(monkeypatch):
    ray = Ray(monkeypatch, batch("one"))
    ray.until_printed("one")
    ray.listener.stop()
    assert not ray.listener._thread.is_alive()
    assert not ray.lost.is_set()
