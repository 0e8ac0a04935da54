"""The report on a group tells which weights its ranks hold."""

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
