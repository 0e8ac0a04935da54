"""verl's own `main_ppo`, unmodified, trains for two steps on CPUs: part of `make test-verl`.

tests/verl/trainer has what stands in for devices and for the inference engine.
"""

import os
import subprocess
import sys

import pytest

from tests.ray.agent.planned import pool
from tests.verl.trainer import tiny_model, tiny_training
from workergroups.attaching.pools import placed_nodes

pytestmark = pytest.mark.timeout(1800)

NODES = 2
ENVIRONMENT = {"PYTHONPATH": os.path.dirname(tiny_training.__file__), **tiny_training.environment()}


def train(cluster, directory, use_v1):
    """Return what the trainer prints."""
    tiny_model.write(directory)
    program = subprocess.run(
        tiny_training.command(sys.executable, directory, NODES, use_v1),
        cwd=directory,
        env=os.environ | {"RAY_ADDRESS": cluster.address, "RAY_DEDUP_LOGS": "0"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert program.returncode == 0, program.stdout[-10_000:]
    norms = tiny_training.norms(program.stdout)
    assert list(norms) == [1, 2]
    assert min(norms.values()) > 0
    return program.stdout


@pytest.mark.parametrize("use_v1", [True, False])
def test_the_trainers_ranks_run_on_reserved_bundles(agent, cluster, tmp_path, use_v1):
    agent.until(lambda said: said.pools["actors"].report.reserved_nodes == NODES)
    reserved = [(node.record["placement_group_id"], node.name.node_id) for node in placed_nodes("actors")]
    assert tiny_training.places(train(cluster, tmp_path, use_v1)) == sorted(reserved)


@pytest.mark.parametrize("use_v1", [True, False])
def test_without_reserved_bundles_the_trainer_makes_its_own(agent, cluster, tmp_path, use_v1):
    agent.until(lambda said: "actors" in said.pools, pools=(pool(reserves=False),))
    groups, nodes = zip(*tiny_training.places(train(cluster, tmp_path, use_v1)), strict=True)
    assert len(set(groups)) == len(set(nodes)) == NODES
