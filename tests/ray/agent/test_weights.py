"""The report on a group tells which weights its ranks hold; a rank that is created alone gets those of its peers."""

import dataclasses
import os
import signal

import pytest
import ray

import workergroups
from tests.ray.agent.planned import Group, launch
from tests.ray.agent.test_executor import all_ready, ranks
from workergroups.announcements import held_weights
from workergroups.ray_private import key_value_store
from workergroups_agent import weights_reader

TRAINER = """
import torch
import workergroups

class Trainer(workergroups.Worker):
    def __init__(self):
        super().__init__()
        self.weights = workergroups.Weights("policy")
        self.tensor = torch.arange(10.0)

    def publish(self, version, flip=None):
        if self.rank == flip:
            self.tensor[3] += 1
        self.weights.publish({"w": self.tensor}, version=version)
"""


def test_versions_are_reported_and_ranks_with_other_bits_named(agent, monkeypatch):
    monkeypatch.setattr(weights_reader, "READ_SECONDS", 0.1)
    group = Group(code=TRAINER, launch=launch("accumulator.Trainer"))
    agent.until(all_ready, group)
    attached = workergroups.attach(group.name)
    attached.execute_all_sync("publish", 4)
    (found,) = ranks(agent.go_on_until(lambda reports: ranks(reports).weights)).weights
    assert (found.model, found.version, found.behind, found.different) == ("policy", 4, "", "")
    attached.execute_rank_zero_sync("publish", 5)
    agent.go_on_until(lambda reports: ranks(reports).weights[0].behind == "1")
    attached.execute_all_sync("publish", 6, flip=1)
    agent.go_on_until(lambda reports: ranks(reports).weights[0].different == "0-1")

    assert len(key_value_store.keys(held_weights.KV_NAMESPACE)) == 2
    for actor in attached.workers:
        ray.kill(actor)
    agent.go_on_until(lambda reports: not key_value_store.keys(held_weights.KV_NAMESPACE))


REPLACED = """
import os
import time
import torch
import workergroups

class Trainer(workergroups.Worker):
    def __init__(self, shards=1):
        super().__init__()
        self.weights = workergroups.Weights("policy")
        self.tensor = torch.zeros(8, 4)
        at = self.rank % shards
        self.shard = workergroups.WeightShard(self.tensor[: 8 // shards], (8, 4), (at * 8 // shards, 0))
        self.received = self.weights.receive_from_peers({"w": self.shard}, timeout=20)

    def begin(self, published=None, version=None):
        if published:
            self.weights.receive(published, {"w": self.shard})
            return None
        self.tensor.fill_(version)
        return self.weights.publish({"w": self.shard}, version=version)

    def work(self, seconds):
        time.sleep(seconds)

    def step(self):
        self.tensor.add_(1)

    def close(self):
        self.weights.close()

    def has(self):
        return self.received and self.received.version, self.tensor.sum().item() / 32

    def pid(self):
        return os.getpid()
"""


class Replaced:
    """A group whose last rank dies again and again."""

    def __init__(self, agent, **kwargs):
        self.agent = agent
        self.group = Group(code=REPLACED, launch=launch("accumulator.Trainer", init_kwargs=kwargs))
        agent.until(all_ready, self.group)
        self.handle = workergroups.attach(self.group.name, timeout=20)
        self.births = 0

    def replace_last(self, meanwhile=lambda first: None):
        """Kill the last rank; return its version and values when the one in its place is ready."""
        last = self.handle.world_size - 1
        pid = self.handle.execute_all_sync("pid")[last]
        meanwhile(self.handle.workers[0])
        os.kill(pid, signal.SIGKILL)
        self.births += 1
        self.group = dataclasses.replace(self.group, births={last: self.births})
        self.agent.until(
            lambda reports: all_ready(reports) and ranks(reports).birth == self.births, self.group, seconds=30
        )
        self.handle.renew(timeout=20)
        return ray.get(self.handle.workers[last].has.remote())


def test_a_rank_in_place_of_another_has_its_peers_weights_before_it_is_ready(agent):
    replaced = Replaced(agent)
    assert replaced.handle.execute_all_sync("has") == [(None, 0)] * 2, "all are new"
    assert replaced.replace_last() == (None, 0), "nobody has published"
    published = replaced.handle.execute_rank_zero_sync("begin", version=4)
    assert replaced.replace_last() == (4, 4), "from the rank that published"
    replaced.handle.execute_all_sync("begin", [published])
    replaced.handle.execute_rank_zero_sync("begin", version=5)
    assert replaced.replace_last(lambda first: first.work.remote(3600)) == (5, 5), "from one that computes"


def test_a_rank_gets_what_its_peer_has_received(agent):
    replaced = Replaced(agent)
    published = ray.get(replaced.handle.workers[1].begin.remote(version=7))
    ray.get(replaced.handle.workers[0].begin.remote([published]))
    assert replaced.replace_last() == (7, 7)


@pytest.mark.parametrize("kwargs", [{"shards": 2}, {}])
def test_without_weights_that_are_whole_and_stay_a_rank_is_told_to_load_others(agent, kwargs):
    replaced = Replaced(agent, **kwargs)
    replaced.handle.execute_all_sync("begin", version=3)
    changed = "close" if kwargs else "step"
    version, _ = replaced.replace_last(lambda first: ray.get(getattr(first, changed).remote()))
    assert version is None
