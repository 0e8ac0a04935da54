"""How a driver looks for notices and answers them, also while Ray's control service (the GCS) is away."""

import json
import time
from types import SimpleNamespace

import pytest
import ray
from ray.exceptions import RpcError

from workergroups.announcements import notices
from workergroups.announcements.notices import NoticeReader
from workergroups.node.notice import Notice, to_record

POD = "a-worker"


class FakeGcs:
    """A GCS with one live node, which can be away."""

    def __init__(self):
        self.stored, self.pods, self.is_away, self.asked = {}, [POD], False, 0

    def _answer(self):
        self.asked += 1
        if self.is_away:
            raise RpcError("Timed out while waiting for GCS to become available")

    def check_session(self):
        self._answer()

    def actor(self, _actor_id):
        return SimpleNamespace(node_id="n", name="", namespace="", job_id="01")

    def actors(self, _state):
        return []

    def nodes(self):
        self._answer()
        return [SimpleNamespace(id="n", pod=pod, is_alive=True) for pod in self.pods]

    def get_many(self, namespace, keys):
        self._answer()
        return {key: self.stored[namespace, key] for key in keys if (namespace, key) in self.stored}

    def put(self, namespace, key, value):
        self._answer()
        self.stored[namespace, key] = value

    def delete(self, namespace, key):
        self._answer()
        self.stored.pop((namespace, key), None)

    def drivers(self):
        return [json.loads(value) for (namespace, _), value in self.stored.items() if namespace == notices._DRIVERS]


@pytest.fixture
def gcs(monkeypatch):
    made = FakeGcs()
    monkeypatch.setattr(notices.Gcs, "of_driver", lambda: made)
    monkeypatch.setattr(notices.records, "node", lambda raw: raw)
    monkeypatch.setattr(notices.records, "actor", lambda raw: raw)
    monkeypatch.setattr(ray, "get_runtime_context", lambda: SimpleNamespace(get_job_id=lambda: "01"))
    monkeypatch.setattr(notices, "LOOK_SECONDS", 0.01)
    return made


def give(gcs, seconds=30):
    given = Notice("a test", time.time() + seconds)
    gcs.stored[notices._NOTICES, POD] = to_record(given)
    return given


def test_a_driver_that_looks_first_while_the_gcs_is_away_finds_nothing_and_then_looks_on(gcs):
    gcs.is_away = True
    reader = NoticeReader(["a"])
    assert reader.look() is None
    gcs.is_away = False
    given = give(gcs)
    assert reader.look() == given
    assert gcs.drivers() == [{"keys": [POD], "answered": []}]


def test_a_notice_that_was_read_stands_while_the_gcs_is_away(gcs):
    reader, given = NoticeReader(["a"]), give(gcs)
    assert reader.look() == given
    gcs.is_away = True
    assert reader.look() == given


def test_an_answer_arrives_once_the_gcs_is_back(gcs, monkeypatch):
    reader = NoticeReader(["a"])
    give(gcs)
    reader.look()
    gcs.is_away, slept = True, []

    def sleep(_):
        slept.append(gcs.drivers())
        gcs.is_away = len(slept) < 3
        if len(slept) == 6:
            gcs.pods = []

    monkeypatch.setattr(notices.time, "sleep", sleep)
    reader.answer()
    assert [each["answered"] for (each,) in slept] == [[]] * 3 + [[POD]] * 3


def test_each_reader_of_a_program_answers_for_itself(gcs):
    first, second = NoticeReader(["a"]), NoticeReader(["a"])
    first.look(), second.look()
    assert len(gcs.drivers()) == 2
    first.stop()
    assert len(gcs.drivers()) == 1


class Own(notices._OwnIncarnation):
    """Looks for the notice of an incarnation; the time is that of the test."""

    def __init__(self):
        self._key, self._found, self._next = "uid/1", None, 0.0


def test_a_rank_does_not_wait_in_each_step_for_a_gcs_that_is_away(gcs, monkeypatch):
    asked, given = [], Notice("a test", time.time() + 30)

    def get_within(seconds, _namespace, key):
        asked.append(key)
        if gcs.is_away:
            raise RpcError("away")
        return to_record(given)

    monkeypatch.setattr(notices.key_value_store, "get_within", get_within)
    own, gcs.is_away = Own(), True
    assert [own.look() for _ in range(100)] == [None] * 100
    assert len(asked) == 1
    own._next, gcs.is_away = 0.0, False
    assert own.look() == given


def test_a_notice_that_is_withdrawn_is_read_no_more(gcs):
    reader, given = NoticeReader(["a"]), give(gcs)
    assert reader.look() == given
    gcs.stored[notices._NOTICES, POD] = b""  # by the pod's next container
    assert reader.look() is None
