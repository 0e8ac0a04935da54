"""What a rank that is created alone gets of its peers: their weights as they are, or a word that there are none."""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import time
from collections import defaultdict
from multiprocessing import get_context
from types import SimpleNamespace
from weakref import WeakValueDictionary

import pytest
import torch

from workergroups.announcements import held_weights
from workergroups.errors import InvalidValueError, WeightsError
from workergroups.naming import RankName
from workergroups.processes import named_ranks
from workergroups.weights import Weights, WeightShard, peers, weights

WORLD_SIZE = 40
SHAPE = (8, 4)


class Ranks:
    """Ranks of one incarnation, all in this process: what each is told of the others, and what it records."""

    def __init__(self, patch):
        self.there = []
        self.present = None
        self.records = {}
        self.shared = defaultdict(WeakValueDictionary)
        patch.setattr(named_ranks, "own", lambda: self.present)
        patch.setattr(named_ranks, "existing", lambda: list(self.there))
        patch.setattr(named_ranks, "handle", lambda rank: rank)
        patch.setattr(peers, "actor_id", str)
        patch.setattr(held_weights, "record", self.record)
        patch.setattr(held_weights, "held", lambda actor_id, model: self.records.get((actor_id, model)))
        context = SimpleNamespace(get_actor_id=lambda: str(self.present))
        patch.setattr(weights.ray, "is_initialized", lambda: True)
        patch.setattr(weights.ray, "get_runtime_context", lambda: context)
        patch.setattr(peers.ray.util, "get_node_ip_address", lambda: "127.0.0.1")
        patch.setattr("workergroups.transfers.tcp_reads.ray.util.get_node_ip_address", lambda: "127.0.0.1")
        patch.setattr(weights, "_PAUSE_SECONDS", 0.01)
        patch.setattr(weights, "_SHARED", None)
        self.patch = patch

    def record(self, actor_id, model, held):
        self.records[actor_id, model] = held

    @contextlib.contextmanager
    def on(self, rank, birth=0):
        """Be a rank, of which there is no other."""
        name = RankName("trainer", "uid", 1, rank, WORLD_SIZE, birth)
        if name not in self.there:
            self.there = [each for each in self.there if each.rank != rank] + [name]
        self.present = name
        self.patch.setattr(weights, "_SHARED", self.shared[str(name)])
        yield
        self.present = None

    def holds(self, rank, tensors, version=None, birth=0, **options):
        """Let a rank publish these tensors; return its weights."""
        with self.on(rank, birth):
            found = Weights("policy")
            found.receive_from_peers(tensors)
            found.publish(tensors, version=version, **options)
        return found

    def receives(self, rank=1, tensors=None, birth=1, **options):
        """Return what a new rank receives: the version, and its first value."""
        tensors = {"w": torch.zeros(SHAPE)} if tensors is None else tensors
        with self.on(rank, birth):
            found = Weights("policy").receive_from_peers(tensors, **options)
        (first, *_) = tensors.values()
        return found and found.version, getattr(first, "tensor", first).flatten()[0].item()


@pytest.fixture
def ranks(monkeypatch):
    return Ranks(monkeypatch)


def filled(value, **options):
    return {"w": torch.full(SHAPE, float(value), **options)}


def test_a_new_rank_has_the_weights_of_a_peer(ranks):
    held = ranks.holds(0, filled(7), version=4)
    assert ranks.receives() == (4, 7)
    assert ranks.receives(rank=2, birth=0)[0] is None, "it was created with all others"
    held.close()


def test_pairs_of_name_and_tensor_are_filled_as_well(ranks):
    held = ranks.holds(0, filled(7), version=4)
    tensor = torch.zeros(SHAPE)
    with ranks.on(1, birth=1):
        assert Weights("policy").receive_from_peers(iter([("w", tensor)])).shards
    assert tensor[0, 0] == 7
    held.close()


def test_the_next_version_of_a_new_rank_is_that_of_its_peers(ranks):
    held = ranks.holds(0, filled(7), version=3)
    with ranks.on(1, birth=1):
        new, tensors = Weights("policy"), filled(0)
        new.receive_from_peers(tensors)
        assert new.publish(tensors).passport.version == 4
    held.close()


def test_a_version_that_cannot_be_published_is_not_used_up(ranks):
    with ranks.on(0):
        held = Weights("policy")
        with pytest.raises(TypeError):
            held.publish({"w": "no tensor"})
        assert held.publish(filled(1)).passport.version == 1


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ({"dtype": torch.bfloat16}, lambda: torch.zeros(SHAPE)),
        ({}, lambda: torch.zeros(SHAPE, dtype=torch.bfloat16)),
        ({}, lambda: WeightShard(torch.zeros(4, 4), SHAPE, (0, 0))),
        ({}, lambda: torch.zeros(4, 4)),
    ],
)
def test_what_no_digest_would_tell_from_other_bits_is_not_received(ranks, caplog, theirs, ours):
    held = ranks.holds(0, filled(7), version=4, **theirs)
    assert ranks.receives(tensors={"w": ours()}) == (None, 0)
    assert "'w'" in caplog.text
    held.close()


def test_the_same_part_comes_from_any_replica_of_it(ranks):
    halves = [{"w": WeightShard(torch.full((4, 4), float(rank % 2)), SHAPE, (rank % 2 * 4, 0))} for rank in range(4)]
    held = [ranks.holds(rank, half, version=2) for rank, half in enumerate(halves) if rank != 1]
    new = {"w": WeightShard(torch.full((4, 4), 9.0), SHAPE, (4, 0))}
    assert ranks.receives(tensors=new) == (2, 1)
    del held[-1]
    ranks.records.popitem()
    assert ranks.receives(tensors=new, birth=2)[0] is None, "only rank 3 had it"


def test_a_peer_that_has_changed_its_weights_since_then_is_not_a_source(ranks, caplog):
    tensors = filled(7)
    held = ranks.holds(0, tensors, version=4)
    tensors["w"].add_(1)
    assert ranks.receives()[0] is None
    assert "arrived with other bits" in caplog.text
    held.close()


def test_a_peer_that_receives_just_now_is_asked_again(ranks, monkeypatch):
    tensors = filled(7)
    held = ranks.holds(0, tensors, version=4)
    with ranks.on(0):
        held._overwritten()

    def publish(seconds):
        if seconds and held.passport is None:
            with ranks.on(0):
                held.publish(tensors, version=5)
            ranks.present = RankName("trainer", "uid", 1, 1, WORLD_SIZE, 1)

    monkeypatch.setattr(weights.time, "sleep", publish)
    assert ranks.receives() == (5, 7)
    held.close()


def test_the_newest_version_of_all_is_received(ranks):
    held = [ranks.holds(rank, filled(rank), version=9 if rank == 0 else 1) for rank in range(WORLD_SIZE) if rank != 1]
    assert ranks.receives() == (9, 0)
    del held


def test_a_peer_that_does_not_answer_costs_a_short_time(ranks, monkeypatch):
    monkeypatch.setattr(peers, "_ANSWER_SECONDS", 0.5)
    of_python_310 = type("TimeoutError", (concurrent.futures._base.Error,), {})
    monkeypatch.setattr(concurrent.futures._base, "TimeoutError", of_python_310)
    held = [ranks.holds(rank, filled(7), version=4) for rank in (0, 2)]
    read = peers._read
    monkeypatch.setattr(
        peers, "_read", lambda until, offer: time.sleep(3) if offer[0].rank == 2 else read(until, offer)
    )
    began = time.monotonic()
    assert ranks.receives() == (4, 7)
    assert time.monotonic() - began < 2.5
    del held


def test_two_models_of_one_name_are_refused(ranks):
    with ranks.on(0):
        actor, critic, other = Weights(), Weights(), Weights()
        actor.receive_from_peers(filled(0))
        with pytest.raises(InvalidValueError, match=r"give each model its own name, such as Weights\('critic'\)"):
            critic.receive_from_peers(filled(0))
        actor.publish(filled(1), version=1)
        other.publish(filled(2), version=2)
        assert ranks.records[str(ranks.present), "model"].version == 1, "not that of another model"
    with ranks.on(0), pytest.raises(InvalidValueError, match="no tensors"):
        Weights("none").receive_from_peers({})


def test_what_was_streamed_cannot_be_read_and_a_rank_without_peers_keeps_nothing(ranks):
    with ranks.on(3):
        trainer = Weights("policy")
        published = trainer.publish(filled(7), version=4)
    with ranks.on(0):
        held = Weights("policy")
        held.receive_from_peers(filled(0))
        dict(held.stream([published], device="cpu"))
        assert ranks.records[str(ranks.present), "policy"].offer is None
        held.receive([published], filled(0))
        assert ranks.records[str(ranks.present), "policy"].offer is not None
    with ranks.on(2):
        Weights("policy").receive([published], filled(0))
        assert ranks.records[str(ranks.present), "policy"].offer is None
    trainer.close()


def test_a_forked_process_answers_for_itself(ranks):
    held = ranks.holds(0, filled(7), version=4)
    ours, theirs = get_context("fork").Pipe()

    def child():
        of_child = Weights("child")
        theirs.send(of_child.publish(filled(3)))
        time.sleep(30)

    process = get_context("fork").Process(target=child)
    process.start()
    try:
        into = filled(0)
        Weights("reader").receive([ours.recv()], into, timeout=10)
        assert into["w"][0, 0] == 3
    finally:
        process.kill()
        process.join()
    held.close()


def test_a_fork_of_a_dead_process_keeps_no_reader_waiting():
    ours, theirs = get_context("fork").Pipe()

    def dies():
        of_child = Weights("dies")
        theirs.send(of_child.publish(filled(3)))
        if os.fork() == 0:
            theirs.send(os.getpid())
            time.sleep(30)
        os._exit(0)

    process = get_context("fork").Process(target=dies)
    process.start()
    published, fork = ours.recv(), ours.recv()
    process.join()
    try:
        began = time.monotonic()
        with pytest.raises(WeightsError, match="cannot be read"):
            Weights("reader").receive([published], filled(0), timeout=20)
        assert time.monotonic() - began < 10
    finally:
        os.kill(fork, 9)
