"""Nothing that the operator reads stays, however the read ends."""

import asyncio
import itertools
import json
from contextlib import suppress

import pytest

from tests.unit.retained import leaves_nothing, retained
from tests.unit.virtual_time import run
from workergroups_api.names import CLUSTER_LABEL, DOUBTS_ANNOTATION
from workergroups_operator.heartbeats import Heartbeats
from workergroups_operator.membership import ClusterKey
from workergroups_operator.skeletons import CONDITIONED, EVENT, LIST, UnexpectedAnswer, read, read_lines, skeleton_of
from workergroups_operator.timings import Timings
from workergroups_operator.watches import Watch
from workergroups_operator.work_queue import FairReconciles, Result, WorkQueue
from workergroups_operator.writes import Writes

KEY = ClusterKey("team", "c")
# The largest object that etcd takes, in pieces as they come.
LARGE = b'{"type": "MODIFIED", "object": {"spec": {"worker": {"args": ["' + b"x" * 1_400_000 + b'"]}}}}'


def lease(number=0, name="c-agent"):
    metadata = {
        "namespace": "team",
        "name": name,
        "uid": f"u-{name}",
        "resourceVersion": str(number),
        "labels": {CLUSTER_LABEL: "c"},
        "annotations": {DOUBTS_ANNOTATION: "{}"},
    }
    spec = {"holderIdentity": "session", "renewTime": f"2026-11-27T00:00:00.{number:06}Z"}
    return {"apiVersion": "v", "kind": "Lease", "metadata": metadata, "spec": spec}


def event(type_, number):
    return json.dumps({"type": type_, "object": lease(number)}).encode() + b"\n"


async def chunks(*parts):
    for part in parts:
        yield part


def ended(coroutine):
    """Run a coroutine that awaits nothing but `sleep(0)`, without an event loop's own memory."""
    with suppress(StopIteration, UnexpectedAnswer):
        while True:
            coroutine.send(None)


async def all_of(lines):
    async for _ in lines:
        pass


async def first_of(lines):
    async for _ in lines:
        break


READINGS = {
    **{
        f"an event: {type_}": lambda number, type_=type_: ended(all_of(read_lines(chunks(event(type_, number)), EVENT)))
        for type_ in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR")
    },
    "a line that is not JSON": lambda _: ended(all_of(read_lines(chunks(b'{"type": "ADDED", "obj}\n'), EVENT))),
    "a watch that is cut off in an event": lambda _: ended(all_of(read_lines(chunks(event("ADDED", 1)[:50]), EVENT))),
    "a watch that nobody reads on": lambda _: ended(first_of(read_lines(chunks(event("ADDED", 1) * 2), EVENT))),
    "a list": lambda number: ended(read(chunks(json.dumps({"items": [lease(number)] * 3}).encode()), LIST)),
    "a list that is cut off": lambda _: ended(read(chunks(b'{"items": [{"metadata": {"name": "x"'), LIST)),
    "an object beyond the limits": lambda _: ended(
        skeleton_of(b'{"metadata": {"name": "x"}, "spec": [1]}', CONDITIONED)
    ),
}


@pytest.mark.parametrize("read_once", READINGS.values(), ids=READINGS)
def test_what_is_read_leaves_nothing(read_once):
    assert leaves_nothing(lambda: retained(read_once, 5_000))


def test_an_object_of_the_largest_size_leaves_nothing_either():
    parts = [LARGE[start : start + 32_768] for start in range(0, len(LARGE), 32_768)]
    assert leaves_nothing(lambda: retained(lambda _: ended(all_of(read_lines(chunks(*parts), EVENT))), 20))


def objects_of_a_watch():
    watch = Watch(lambda: 0.0, 1.0, 0.0)

    def happens(number):
        watch.happened("ADDED", lease(number))
        watch.happened("MODIFIED", lease(number + 1))
        watch.happened("DELETED", lease(number + 2))
        watch.listed([lease(number), lease(number, "other")])
        watch.listed([lease(number)])
        watch.vanished()

    return happens


def leases():
    beats = Heartbeats(Timings())

    def renewed(number):
        beats.note(KEY, lease(number))
        beats.update(KEY, "head", has_pod=True, is_empty=False)
        beats.late()
        if number % 100 == 0:
            beats.forget(KEY)

    return renewed


@pytest.mark.parametrize("memory", [objects_of_a_watch, leases])
def test_what_is_remembered_is_of_what_exists(memory):
    happens = memory()
    assert leaves_nothing(lambda: retained(happens, 5_000))


def in_virtual_time(scenario):
    """Return work that plays a scenario in its own event loop, for twenty clusters that are new."""
    names = itertools.count()

    def play(_):
        run(scenario([ClusterKey(f"n{next(names)}", "c") for _ in range(20)]))

    return play


async def turns(keys):
    fair = FairReconciles(lambda _: 0.0, Timings())

    async def take(key):
        async with fair.slot(key.namespace):
            await asyncio.sleep(0)

    await asyncio.gather(*map(take, keys))


async def reconciles(keys):
    async def work(_):
        return Result(None)

    queue = WorkQueue(work, lambda _: 0.0, Timings())
    for key in keys:
        queue.add(key)
    await asyncio.sleep(10)
    assert (queue._added, queue._tasks) == ({}, set())
    await queue.close()


async def writes(keys):
    async def write():
        await asyncio.sleep(0)

    steps = Writes(lambda _: None, Timings(), at_once=2)
    for key in keys:
        await steps.run(key, {key: write})
    assert steps._writes == {}
    await steps.close()


@pytest.mark.parametrize("scenario", [turns, reconciles, writes])
def test_a_cluster_that_is_gone_leaves_nothing(scenario):
    play = in_virtual_time(scenario)
    assert leaves_nothing(lambda: retained(play, 300))
