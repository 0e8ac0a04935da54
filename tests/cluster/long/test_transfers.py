"""Batches and weights between pods of two nodes: by NIXL, and with `tls` encrypted. torch is mounted.

The ranks treat host memory as a device.
"""

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.cluster.drivers import drive
from tests.cluster.kubectl import config_map, group, pool
from tests.cluster.packages import mounted

PACKAGES = mounted(Path(find_spec("torch").origin).parents[1])
CODE = """
import torch
from workergroups import DataProto, Dispatch, Weights, WeightShard, Worker, register
from workergroups.protocol import on_device
from workergroups.transfers import transports

class Model(Worker):
    def __init__(self):
        super().__init__()
        on_device.is_kept = lambda tensor: tensor.layout == torch.strided
        self.rows = WeightShard(torch.full((512, 1024), float(self.rank)), (1024, 1024), (512 * self.rank, 0))
        self.columns = WeightShard(torch.zeros(1024, 512), (1024, 1024), (0, 512 * self.rank))
        self.weights = Weights()

    @register(Dispatch.DP_COMPUTE_PROTO)
    def make(self, ask):
        return DataProto.from_dict({"x": torch.ones(len(ask), 2**20) + self.rank})

    @register(Dispatch.DP_COMPUTE_PROTO)
    def turned(self, batch):
        return DataProto.from_dict({"x": batch.batch["x"] * 2})

    @register(Dispatch.ONE_TO_ALL)
    def publish(self):
        return self.weights.publish({"w": self.rows})

    @register(Dispatch.ONE_TO_ALL)
    def receive(self, published):
        self.weights.receive(published, {"w": self.columns}, timeout=60)
        return self.columns.tensor.sum().item()

    @register(Dispatch.ONE_TO_ALL)
    def kept(self):
        return len(on_device._LEASES), transports._nixl() is not None
"""
# Rows 0 and 1 of rank 0 go to rank 1, and the others to rank 0.
PROGRAM = """
from workergroups import DataProto
actor, critic = workergroups.attach("actor"), workergroups.attach("critic")
made = actor.make(DataProto.from_dict(non_tensors={"row": [0, 1, 2, 3]}))
keepers = len(made._store.keepers)
first, second = made.chunk(2)
turned = critic.turned(DataProto.concat([second, first]))
unread = made._store.is_packed and turned._store.is_packed
values = turned.batch["x"].amax(dim=1).tolist() + turned.batch["x"].amin(dim=1).tolist()
received = critic.receive(actor.publish())
kept, nixl = zip(*actor.kept())
"""


@pytest.mark.parametrize("tls", [False, True])
def test_what_a_rank_has_goes_to_the_pods_of_other_nodes(namespace, clean, tls):
    namespace.apply(config_map("transfers", transfers=CODE), pool(nodes=2, processes=1, tls=tls, **PACKAGES))
    fields = {"worker": {"class": "transfers.Model"}, "code": {"configMap": {"name": "transfers"}}}
    namespace.apply(*(group(name, ["actors"], **fields) for name in ("actor", "critic")))
    for name in ("actor", "critic"):
        namespace.until_ready("workergroup", name)
    keepers, unread, values, received, nixl = drive(
        namespace, "actors", PROGRAM, "[keepers, unread, values, received, nixl]"
    )
    assert (keepers, unread, set(nixl)) == (2, True, {not tls})
    assert values == [4.0, 4.0, 2.0, 2.0] * 2
    assert received == [512 * 512.0] * 2
