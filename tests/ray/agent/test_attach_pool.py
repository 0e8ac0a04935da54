"""Programs on a planned pool: with its bundles, found by its name, and on nodes of which nothing is reserved."""

import os
from dataclasses import replace

import pytest
import ray

import workergroups
from tests.ray.agent.planned import Group, pool
from workergroups import (
    PoolNotFoundError,
    RayClassWithInitArgs,
    RayWorkerGroup,
    ResourcePoolManager,
    attach_pool,
    merge_resource_pool,
    split_resource_pool,
)
from workergroups_common.ranges import expanded


def reserved(reports):
    return all(not entry.report.nodes for entry in reports.pools.values())


def where():
    """A class that travels by value, as a program's own does."""

    class Where(workergroups.Worker):
        def look(self):
            return ray.get_runtime_context().get_node_id(), os.environ["CUDA_VISIBLE_DEVICES"]

    return Where


def test_a_program_splits_a_pool_and_makes_groups_on_the_parts(agent):
    agent.until(reserved)
    actors = attach_pool("actors", timeout=20)
    assert (actors.store, actors.use_gpu, actors.max_colocate_count) == ([4, 4], True, 10)
    left, right = split_resource_pool(actors, 4)
    with (
        RayWorkerGroup(left, RayClassWithInitArgs(where())) as one,
        RayWorkerGroup(right, RayClassWithInitArgs(where())) as other,
    ):
        (here, there), devices = zip(
            *[zip(*group.execute_all_sync("look"), strict=True) for group in (one, other)], strict=True
        )
    assert len(set(here)) == len(set(there)) == 1
    assert set(here) != set(there)
    assert devices == (("0", "1", "2", "3"),) * 2


def accumulator():
    """The class of seed 000, which travels by value."""

    class GPUAccumulator(workergroups.Worker):
        def __init__(self):
            super().__init__()
            self.value = self.rank

        def add(self, x):
            self.value += x
            return self.value

    return RayClassWithInitArgs(GPUAccumulator)


def test_a_program_merges_parts_of_a_pool_and_has_the_numbers_of_seed_000(agent):
    agent.until(reserved)
    left, right = split_resource_pool(attach_pool("actors", timeout=20), 4)
    merged = merge_resource_pool(left, right)
    assert merged.local_rank_list() == [0, 1, 2, 3, 0, 1, 2, 3]
    with (
        RayWorkerGroup(left, accumulator()) as group,
        RayWorkerGroup(right, accumulator()) as group_new,
        RayWorkerGroup(merged, accumulator()) as group_merged,
    ):
        assert group.execute_all_sync("add", x=[1, 1, 1, 1]) == [1, 2, 3, 4]
        assert group_new.execute_all_sync("add", x=[2, 2, 2, 2]) == [2, 3, 4, 5]
        assert group_merged.execute_all_sync("add", x=[3] * 8) == [3, 4, 5, 6, 7, 8, 9, 10]


def test_ranks_of_a_program_see_all_devices_of_their_process(agent):
    agent.until(reserved, pools=(pool(devices=2),))
    with RayWorkerGroup(attach_pool("actors", timeout=20), RayClassWithInitArgs(where())) as group:
        assert [devices for _, devices in group.execute_all_sync("look")] == ["0,1", "2,3"] * 2


def test_an_attached_group_has_a_pool_over_its_own_bundles(agent):
    trainer = Group(bundles=(("actors", 1, 2), ("actors", 4, 2)))
    agent.until(lambda reports: reports.groups["trainer"].report.ready_count == 4, trainer)
    attached = workergroups.attach("trainer", timeout=20)
    bundles = attached.resource_pool
    assert (bundles.store, bundles.use_gpu, bundles.max_colocate_count) == ([2, 2], True, 10)
    assert (bundles.local_rank_list(), bundles.local_world_size_list()) == ([0, 1, 0, 1], [2] * 4)
    with bundles, RayWorkerGroup(bundles, RayClassWithInitArgs(where())) as beside:
        devices = [seen for _, seen in beside.execute_all_sync("look")]
        assert devices == attached.execute_all_sync("environment", "CUDA_VISIBLE_DEVICES") == ["1", "2", "0", "1"]
    assert attached.execute_all_sync("add", x=[0] * 4) == [0, 1, 2, 3]


def test_a_program_leaves_the_reservation_as_it_was(agent):
    before = agent.until(reserved)
    with attach_pool("actors", timeout=20):
        pass
    assert agent.go_on_until(reserved) == before


def test_a_pool_that_has_not_all_of_its_bundles_is_not_attached_to(agent):
    agent.until(lambda reports: reports.pools["actors"].report.joined_nodes == 2, pools=(pool(nodes=3),))
    with pytest.raises(PoolNotFoundError, match=r"after 0.5 s, 0 of 3 nodes of pool 'actors' have their bundles"):
        attach_pool("actors", timeout=0.5)


def test_a_pool_that_grows_offers_the_bundles_that_it_had(agent):
    agent.until(reserved)
    agent.until(lambda reports: reports.pools["actors"].report.planned_nodes == 3, pools=(pool(nodes=3, settled=2),))
    with attach_pool("actors", timeout=20) as actors:
        assert actors.store == [4, 4]


@pytest.mark.long
def test_a_pool_that_shrinks_gives_up_a_node_when_its_ranks_have_ended(agent):
    before = agent.until(
        lambda reports: reports.groups["trainer"].report.ready_count == 8, trainer := Group(bundles=(("actors", 0, 8),))
    ).pools["actors"]
    # The last node still has bundles of a group: nothing is offered or released.
    agent.until(lambda reports: reports.groups["trainer"].report.ready_count == 8, trainer, pools=(pool(settled=1),))
    with attach_pool("actors", timeout=20) as actors:
        assert actors.store == [4]
    smaller = replace(trainer, incarnation=2, bundles=(("actors", 0, 4),))
    said = agent.until(
        lambda reports: (
            reports.groups["trainer"].report.ready_count == 4 and not reports.pools["actors"].report.leaving
        ),
        smaller,
        pools=(pool(nodes=1, settled=1),),
    ).pools["actors"]
    assert (said.report.reserved, said.report.joined_nodes) == ("0", 2)
    assert said.report.pods == expanded(before.report.pods)[0]


def test_a_pool_that_is_gone_is_not_attached_to(agent):
    agent.until(reserved)
    agent.until(lambda reports: not reports.pools, pools=())
    with pytest.raises(PoolNotFoundError, match=r"nothing is reserved for a pool 'actors' "):
        attach_pool("actors", timeout=0.5)


def test_where_nothing_is_reserved_a_program_has_the_devices_for_itself(agent):
    agent.until(lambda reports: reports.pools["actors"].report.joined_nodes == 2, pools=(pool(reserves=False),))
    of_a_task = ray.remote(num_gpus=4)(lambda: os.environ["CUDA_VISIBLE_DEVICES"]).remote()
    assert ray.get(of_a_task, timeout=30) == "0,1,2,3"
    ResourcePoolManager({"all": [4, 4]}, {}).create_resource_pool()  # verl's check of resources is in it
    with pytest.raises(PoolNotFoundError, match="a pool with reservation: None has no bundles"):
        attach_pool("actors", timeout=0.5)
