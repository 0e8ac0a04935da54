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
    def __init__(self):
        super().__init__()
        self.weights = workergroups.Weights("policy")
        self.tensor = torch.zeros(8, 4)
        self.received = self.weights.receive_from_peers({"w": self.tensor}, timeout=20)

    def publish(self, version):
        self.tensor.fill_(version)
        return self.weights.publish({"w": self.tensor}, version=version)

    def receive(self, published):
        self.weights.receive([published], {"w": self.tensor})

    def step(self):
        self.tensor.add_(1)

    def work(self, seconds):
        time.sleep(seconds)

    def has(self):
        return self.received and self.received.version, self.tensor.mean().item(), os.getpid()
"""


@pytest.mark.long
def test_a_rank_in_place_of_another_has_its_peers_weights_before_it_is_ready(agent):
    group = Group(code=REPLACED, launch=launch("accumulator.Trainer"))
    agent.until(all_ready, group)
    attached = workergroups.attach(group.name, timeout=20)
    (*first, _), (*second, pid) = attached.execute_all_sync("has")
    assert (first, second) == ([None, 0], [None, 0]), "all are new"

    def replace_second(births, pid):
        """Kill rank 1; return what the one in its place has when it is ready."""
        os.kill(pid, signal.SIGKILL)
        replaced = dataclasses.replace(group, births={1: births})
        agent.until(lambda reports: all_ready(reports) and ranks(reports).birth == births, replaced, seconds=90)
        attached.renew(timeout=20)
        return ray.get(attached.workers[1].has.remote())

    version, value, pid = replace_second(1, pid)
    assert (version, value) == (None, 0), "nobody has published"
    published = ray.get(attached.workers[1].publish.remote(version=7))
    ray.get(attached.workers[0].receive.remote(published))
    version, value, pid = replace_second(2, pid)
    assert (version, value) == (7, 7), "from one that has received them"
    ray.get(attached.workers[0].publish.remote(version=8))
    attached.workers[0].work.remote(3600)
    version, value, _ = replace_second(3, pid)
    assert (version, value) == (8, 8), "from one that computes"
