"""Pauses between lists and watches, what was deleted meanwhile, and what nobody watches any more."""

import asyncio

import pytest

from workergroups_operator import watches
from workergroups_operator.timings import Timings
from workergroups_operator.watches import Watches

TIMINGS = Timings(watch_retry=2.0)


class Clock:
    """Time passes only by sleeping."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now

    async def sleep(self, seconds):
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(watches.asyncio, "sleep", clock.sleep)
    return clock


def item(name, uid="u", **spec):
    return {"metadata": {"namespace": "ns", "name": name, "uid": uid}, "spec": spec}


def turns(clock, watch, count):
    begun = []

    async def take():
        for _ in range(count):
            await watch.turn(is_stream=True)
            begun.append(clock.now - 100.0)

    asyncio.run(take())
    return begun


def test_a_watch_that_ends_at_once_begins_again_after_a_pause(clock):
    assert turns(clock, Watches(TIMINGS, clock).of("/pods"), 3) == [0.0, TIMINGS.watch_retry, 2 * TIMINGS.watch_retry]


def test_a_watch_that_lasted_begins_again_at_once(clock):
    watch = Watches(TIMINGS, clock).of("/pods")
    turns(clock, watch, 1)
    clock.now += TIMINGS.watch_retry + 1
    assert turns(clock, watch, 1) == [TIMINGS.watch_retry + 1]


def test_kinds_do_not_wait_for_each_other_nor_lists_for_watches(clock):
    found = Watches(TIMINGS, clock)
    asyncio.run(found.of("/pods").turn(is_stream=False))
    assert turns(clock, found.of("/pods"), 1) == turns(clock, found.of("/roles"), 1) == [0.0]


def test_what_a_new_list_lacks_has_vanished(clock):
    watch = Watches(TIMINGS, clock).of("/pods")
    watch.listed([item("a"), item("b"), item("c")])
    watch.happened("ADDED", item("d"))
    watch.happened("DELETED", item("c"))
    watch.listed([item("a"), item("e")])
    assert watch.vanished() == [item("b"), item("d")]
    assert watch.vanished() == []


def test_an_object_that_was_created_again_under_its_name_is_another_one(clock):
    watch = Watches(TIMINGS, clock).of("/pods")
    watch.listed([item("a", uid="1")])
    watch.listed([item("a", uid="2")])
    assert watch.vanished() == [item("a", uid="1")]


def test_a_kind_that_is_neither_heard_of_nor_asked_for_is_named(clock):
    found = Watches(TIMINGS, clock)
    assert found.ended() == []
    for path in ("/pods", "/roles", "/leases"):
        found.of(path)
    clock.now += TIMINGS.unwatched / 2
    found.of("/roles").note()
    asyncio.run(found.of("/leases").turn(is_stream=False))
    clock.now += TIMINGS.unwatched / 2 + 1
    assert found.ended() == ["/pods"]
