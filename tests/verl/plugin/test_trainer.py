"""verl's own `main_ppo`, unmodified, trains for two steps on CPUs: part of `make test-verl`.

tests/verl/trainer has what stands in for devices and for the inference engine.
"""

import os
import subprocess
import sys
import time

import pytest

from tests.ray.agent.planned import pool
from tests.verl.trainer import tiny_model, tiny_training
from workergroups import Notice
from workergroups.announcements import notices
from workergroups.attaching.pools import placed_nodes
from workergroups.ray_private import records
from workergroups.ray_private.gcs import Gcs

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
def test_a_trainer_saves_after_the_step_in_which_a_node_gives_notice_and_the_node_waits(
    agent, cluster, tmp_path, use_v1
):
    agent.until(lambda said: said.pools["actors"].report.reserved_nodes == NODES)
    gcs, checkpoints = Gcs.of_driver(), tmp_path / "checkpoints"
    (pod,) = {node.pod for node in map(records.node, gcs.nodes()) if node.is_alive}
    notice = Notice("a test", time.time() + 600)
    notices.tell(gcs, pod, notice)
    tiny_model.write(tmp_path)
    # Without the notice, it would only save after the last step.
    options = ["trainer.save_freq=1000", f"trainer.default_local_dir={checkpoints}"]
    command = [*tiny_training.command(sys.executable, tmp_path, NODES, use_v1), *options]
    with subprocess.Popen(command, cwd=tmp_path, env=os.environ | {"RAY_ADDRESS": cluster.address}) as trainer:
        while not gcs.keys(notices._DRIVERS):  # it looks for notices after its first step
            assert trainer.poll() is None
            time.sleep(0.2)
        notices.wait_for_drivers(gcs, pod, notice)
        assert notice.seconds > 0
        assert (checkpoints / "latest_checkpointed_iteration.txt").read_text() == "1"
        trainer.terminate()


@pytest.mark.parametrize("use_v1", [True, False])
def test_without_reserved_bundles_the_trainer_makes_its_own(agent, cluster, tmp_path, use_v1):
    agent.until(lambda said: "actors" in said.pools, pools=(pool(reserves=False),))
    groups, nodes = zip(*tiny_training.places(train(cluster, tmp_path, use_v1)), strict=True)
    assert len(set(groups)) == len(set(nodes)) == NODES
