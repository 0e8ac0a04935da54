from __future__ import annotations

import pytest

from workergroups.announcements import incarnations
from workergroups.announcements.incarnations import Incarnation
from workergroups.ray_private import key_value_store


class FakeStore:
    """The GCS's key-value store, which counts what is written."""

    def __init__(self):
        self.content = {}
        self.writes = 0

    def put(self, namespace, key, value):
        self.writes += 1
        self.content[namespace, key] = value

    def get(self, namespace, key):
        return self.content.get((namespace, key))

    def delete(self, namespace, key):
        self.content.pop((namespace, key), None)


@pytest.fixture
def store(monkeypatch):
    store = FakeStore()
    for name in ("put", "get", "delete"):
        monkeypatch.setattr(key_value_store, name, getattr(store, name))
    return store


def test_what_was_announced_last_is_current(store):
    assert incarnations.current("trainer") is None
    incarnations.announce("trainer", "uid1", 1)
    incarnations.announce("critic", "uid2", 7)
    incarnations.announce("trainer", "uid1", 2)
    assert incarnations.current("trainer") == Incarnation("uid1", 2)
    assert incarnations.current("critic") == Incarnation("uid2", 7)


def test_what_is_known_is_not_written_again(store):
    for _ in range(3):
        incarnations.announce("trainer", "uid1", 1)
    assert store.writes == 1


def test_a_forgotten_group_has_no_incarnation(store):
    incarnations.announce("trainer", "uid1", 1)
    incarnations.forget("trainer")
    incarnations.forget("trainer")
    assert incarnations.current("trainer") is None


@pytest.mark.parametrize(
    "garbage",
    [
        b"",
        b"\xff\x00",
        b"null",
        b"[]",
        b"3",
        b'{"uid": "uid1"}',
        b'{"uid": 1, "incarnation": 1}',
        b'{"uid": "uid1", "incarnation": "1"}',
        b'{"uid": "uid1", "incarnation": true}',
        b'{"uid": "uid1", "incarnation": 0}',
        b"[" * 100_000,
    ],
)
def test_what_cannot_be_read_counts_as_nothing_and_is_written_over(store, garbage):
    incarnations.announce("trainer", "uid1", 1)
    [key] = store.content
    store.content[key] = garbage
    assert incarnations.current("trainer") is None
    incarnations.announce("trainer", "uid1", 1)
    assert incarnations.current("trainer") == Incarnation("uid1", 1)


def test_why_the_ranks_are_new_is_told_as_far_as_it_can_be_read(store):
    incarnations.announce("trainer", "uid1", 2, cause="rank 1: Hung: boom")
    assert incarnations.current("trainer").cause == "rank 1: Hung: boom"
    [key] = store.content
    for garbage, read in (("[1]", ""), ('"' + "x" * 5000 + '"', "x" * 2048)):
        store.content[key] = f'{{"uid": "uid1", "incarnation": 2, "cause": {garbage}}}'.encode()
        assert incarnations.current("trainer").cause == read


def test_an_incarnation_of_which_the_operator_has_given_up_is_the_same_one(store):
    incarnations.announce("trainer", "uid1", 2, is_final=True)
    current = incarnations.current("trainer")
    assert current == Incarnation("uid1", 2)
    assert current.is_final
    incarnations.announce("trainer", "uid1", 2)
    assert not incarnations.current("trainer").is_final
