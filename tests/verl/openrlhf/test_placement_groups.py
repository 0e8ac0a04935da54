"""OpenRLHF's own placement groups on a pool of each kind: its launcher unmodified, part of `make test-openrlhf`."""

import importlib
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import pytest
import ray
from ray import cloudpickle
from ray.util import placement_group_table, remove_placement_group
from ray.util.placement_group import PlacementGroup

from tests.ray.agent.planned import pool
from workergroups.attaching.pools import placed_nodes
from workergroups.waiting import poll

OPENRLHF = Path(os.environ["OPENRLHF"])
# What trains and what infers needs packages that are not here, and the launcher imports only names from it.
ABSENT = {
    "openrlhf.models": ("Actor", "get_llm_for_sequence_regression"),
    "openrlhf.utils.deepspeed": ("DeepspeedStrategy",),
}


@pytest.fixture(scope="module")
def launcher():
    with pytest.MonkeyPatch.context() as patch:
        for package in ("openrlhf", "openrlhf.utils", "openrlhf.trainer", "openrlhf.trainer.ray"):
            module = ModuleType(package)
            module.__path__ = [str(OPENRLHF / package.replace(".", "/"))]
            patch.setitem(sys.modules, package, module)
        for name, words in ABSENT.items():
            module = ModuleType(name)
            vars(module).update(dict.fromkeys(words, object))
            patch.setitem(sys.modules, name, module)
        for name in ("utils", "launcher"):
            module = importlib.import_module(f"openrlhf.trainer.ray.{name}")
            cloudpickle.register_pickle_by_value(module)
        yield module


def rank(launcher):
    class Rank(launcher.BaseDistributedActor):
        def place(self):
            return ray.get_runtime_context().get_node_id(), ray.get_gpu_ids()[0]

    return ray.remote(Rank)


def test_on_a_pool_without_reservation_its_ranks_have_all_devices(agent, launcher):
    agent.until(lambda said: said.pools["actors"].report.joined_nodes == 2, pools=(pool(reserves=False),))
    group = launcher.RayActorGroup(2, 4, rank(launcher))
    places = ray.get(group.async_run_method("place"))
    assert len({node for node, _ in places}) == 2
    assert len(set(places)) == 8


def pending():
    """OpenRLHF's placement groups that wait for room."""
    return [key for key, record in placement_group_table().items() if record["state"] == "PENDING"]


def test_on_a_pool_with_reservation_its_placement_group_waits_and_takes_no_bundle(agent, launcher):
    agent.until(lambda said: said.pools["actors"].report.reserved_nodes == 2)
    before = placed_nodes("actors")
    with ThreadPoolExecutor() as threads:
        starting = threads.submit(launcher.RayActorGroup, 2, 4, rank(launcher))
        (waiting,) = poll(pending, timeout=60)
        with pytest.raises(TimeoutError):
            starting.result(5)
        assert placed_nodes("actors") == before
        remove_placement_group(PlacementGroup(ray.PlacementGroupID(bytes.fromhex(waiting))))
        with pytest.raises(ray.exceptions.RayError):
            starting.result(60)
