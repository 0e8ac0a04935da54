"""Which weights ranks hold, in the report of their group: who is behind, and who has other bits than its replicas."""

from __future__ import annotations

import json

import pytest

from tests.unit.agent.ray_world import rank, state
from workergroups.announcements import held_weights
from workergroups.announcements.held_weights import HeldWeights, Offer
from workergroups_agent import weights_reader
from workergroups_agent.observer.weights import weights_of
from workergroups_agent.weights_reader import RecordedWeights, WeightsReader
from workergroups_api.report import WeightsReport

WHOLE, PART = 11, 12


def recorded(*ranks):
    """Of each rank, version, layout and digest."""
    return {f"actor-{number}": {"policy": HeldWeights(*each)} for number, each in enumerate(ranks) if each is not None}


def report(now, before=(), ranks=None):
    actors = ranks or [rank(number) for number in range(len(now))]
    there = state(ranks=actors)
    return weights_of(
        {each.name.rank: each for each in there.ranks}, RecordedWeights(recorded(*now), recorded(*before))
    )


@pytest.mark.parametrize(
    ("now", "before", "version", "behind", "different"),
    [
        ([(3, WHOLE, 7)] * 4, [(2, WHOLE, 6)] * 4, 3, "", ""),
        # In the middle of a hand-over.
        ([(3, WHOLE, 7), (2, WHOLE, 6)], [(2, WHOLE, 6)] * 2, 3, "", ""),
        # Five seconds later.
        ([(3, WHOLE, 7), (2, WHOLE, 6)], [(3, WHOLE, 7), (2, WHOLE, 6)], 3, "1", ""),
        ([(9, WHOLE, 7), (2, WHOLE, 6), (9, WHOLE, 7)], [(8, WHOLE, 7), (2, WHOLE, 6)], 9, "1", ""),
        ([(3, WHOLE, 7), (3, WHOLE, 7), (3, WHOLE, 8), (3, WHOLE, 7)], [], 3, "", "2"),
        ([(3, WHOLE, 7), (3, WHOLE, 8)], [], 3, "", "0-1"),
        # Other parts are no replicas.
        ([(3, WHOLE, 7), (3, PART, 8)], [], 3, "", ""),
        ([None, (3, WHOLE, 7), None], [], 3, "", ""),
    ],
)
def test_ranks_that_are_behind_or_differ_are_named(now, before, version, behind, different):
    assert report(now, before) == (WeightsReport(model="policy", version=version, behind=behind, different=different),)


def test_dead_ranks_and_groups_without_weights_are_not_reported():
    assert report([(3, WHOLE, 7)], ranks=[rank(0, "DEAD")]) == ()
    assert report([None, None]) == ()


class FakeGcs:
    def __init__(self):
        self.records, self.asked = {}, 0

    def keys(self, namespace):
        self.asked += 1
        return list(self.records)

    def get_many(self, namespace, keys):
        return {key: self.records[key] for key in keys}


def test_they_are_read_every_five_seconds_with_what_was_there_before(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(weights_reader.time, "monotonic", lambda: now[0])
    gcs = FakeGcs()
    reader = WeightsReader(gcs)
    assert reader.read({"a"}) == RecordedWeights()
    gcs.records = {"a": json.dumps({"policy": {"version": 1, "layout": 2, "digest": 3}}).encode(), "other": b"{}"}
    assert reader.read({"a"}) == RecordedWeights()
    now[0] = 5.0
    assert reader.read({"a"}).now == {"a": {"policy": HeldWeights(1, 2, 3)}}
    now[0] = 10.0
    found = reader.read({"a"})
    assert found.now == found.before
    assert gcs.asked == 3


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[1]",
        b"{" * 1000,
        b'{"policy": 1}',
        b'{"policy": {"version": true, "layout": 1, "digest": 1}}',
        b'{"policy": {"version": 1, "layout": -1, "digest": 1}}',
        json.dumps({"policy": {"version": 2**64, "layout": 1, "digest": 1}}).encode(),
        json.dumps({"p" * 64: {"version": 1, "layout": 1, "digest": 1}}).encode(),
        json.dumps({f"{'p' * 50}{at}": {"version": 1, "layout": 1, "digest": 1} for at in range(99)}).encode(),
    ],
)
def test_what_no_rank_of_ours_writes_is_not_read(data):
    assert held_weights.read(data) == {}


@pytest.mark.parametrize("offer", [None, 1, {}, {"host": 1, "port": 1, "lease": "", "size": 1}, {"host": "h"}])
def test_an_odd_offer_is_none(offer):
    data = json.dumps({"policy": {"version": 2, "layout": 1, "digest": 1, "offer": offer}}).encode()
    assert held_weights.read(data) == {"policy": HeldWeights(2, 1, 1)}


def test_a_rank_records_a_few_models(monkeypatch):
    written = {}
    monkeypatch.setattr(held_weights, "_own", {})
    monkeypatch.setattr(held_weights.key_value_store, "put", lambda namespace, key, value: written.update({key: value}))
    offer = Offer("2001:db8:85a3:8d3:1319:8a2e:370:7348", 65535, 32 * "f", 2**28)
    for version in (1, 2**63):
        for model in range(10):
            held_weights.record("a", f"{model}{62 * 'm'}", HeldWeights(version, 2**64 - 1, 2**64 - 1, offer))
    found = held_weights.read(written["a"])
    assert found == {f"{model}{62 * 'm'}": HeldWeights(2**63, 2**64 - 1, 2**64 - 1, offer) for model in range(8)}
    assert len(written["a"]) <= held_weights.MAX_BYTES
