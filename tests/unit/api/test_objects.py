"""What a pool and a group are when only the least is written."""

import pytest
from pydantic import ValidationError

from workergroups_api.names import node_group
from workergroups_api.resource_pool import MAX_NAME, ResourcePool
from workergroups_api.worker_group import PoolRef, WorkerGroup

METADATA = {"name": "ppo", "namespace": "team", "uid": "0123456789abcdef"}


def pool(**spec) -> ResourcePool:
    return ResourcePool.model_validate({"metadata": METADATA, "spec": {"processesPerNode": 8} | spec})


def group(**spec) -> WorkerGroup:
    return WorkerGroup.model_validate({"metadata": METADATA, "spec": {"worker": {"class": "trainer.Actor"}} | spec})


def test_the_least_pool_is_one_node_on_a_cluster_of_its_name():
    assert (pool().spec.nodes, pool().world_size, pool().cluster) == (1, 8, "ppo")


def test_a_pool_may_name_its_cluster_and_have_more_nodes():
    larger = pool(nodes=2, clusterName="rl")
    assert (larger.world_size, larger.cluster) == (16, "rl")


def test_the_least_group_runs_on_the_pool_of_its_name():
    assert group().pools == (PoolRef(name="ppo"),)


def test_a_pool_of_the_same_name_recreated_has_another_worker_group():
    assert node_group("ppo", "01234567-89") == "ppo-01234567"
    assert node_group("ppo", "01234567-89") != node_group("ppo", "11234567-89")
    assert len(node_group("p" * MAX_NAME, "01234567-89")) <= 50


def test_the_devices_of_all_nodes_in_words():
    asked = {"nodes": 2, "accelerator": {"product": "NVIDIA-H100-80GB-HBM3", "perProcess": 2}}
    assert pool(**asked).spec.described_accelerators == "32 x NVIDIA-H100-80GB-HBM3"
    assert pool().spec.described_accelerators == "8 x nvidia.com/gpu"
    assert pool(accelerator={"vendor": "none"}).spec.described_accelerators == "none"


@pytest.mark.parametrize("field", ["cpu", "memory", "rdma/hca", "request"])
def test_an_amount_in_the_wrong_place_is_not_passed_over(field):
    """The API server keeps it, so that the operator can report it."""
    for spec in ({"resources": {field: 1}}, {"head": {"resources": {field: 1}}}, {"agent": {"resources": {field: 1}}}):
        with pytest.raises(ValidationError, match=field):
            pool(**spec)


@pytest.mark.parametrize("make", [pool, group])
def test_what_a_later_version_brings_is_passed_over(make):
    assert make(novelty={"a": 1}).spec == make().spec


@pytest.mark.parametrize("make", [pool, group])
def test_without_a_status_nothing_is_claimed(make):
    claimed = make().status.to_json()
    assert {key: value for key, value in claimed.items() if value} == {}
