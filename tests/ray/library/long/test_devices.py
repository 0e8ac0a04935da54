"""Ranks with several devices each: on a node with eight of them, which are only numbers here."""

from __future__ import annotations

import os
import time

import pytest
import ray
from ray.cluster_utils import Cluster
from ray.util.placement_group import placement_group, remove_placement_group

from workergroups import RayClassWithInitArgs
from workergroups.single_controller.ray.ranks import Seat, create_ranks

NUMBERS = list("01234567")
UUIDS = [f"GPU-{letter}" for letter in "hgfedcba"]


class Device:
    def __init__(self):
        self.names = [name for name in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES") if name in os.environ]
        self.in_constructor = self.devices()

    def devices(self):
        """What each of the variables says."""
        return [os.environ[name].split(",") for name in self.names]

    def seen(self):
        assert self.devices() == self.in_constructor
        return self.in_constructor

    def local_rank(self):
        return os.environ["LOCAL_RANK"], os.environ["LOCAL_WORLD_SIZE"]


@pytest.fixture(scope="module")
def two_nodes(ray_environment, rays):
    """One node whose devices are numbered, and one whose environment lists them."""
    rays.stop()
    cluster = Cluster()
    cluster.add_node(num_cpus=32, num_gpus=8, resources={"numbered": 1}, include_dashboard=False)
    listed = {"CUDA_VISIBLE_DEVICES": ",".join(UUIDS)}
    cluster.add_node(num_cpus=32, num_gpus=8, resources={"listed": 1}, env_vars=listed)
    ray.init(address=cluster.address, log_to_driver=False)
    yield
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture(params=["numbered", "listed"])
def node(request, two_nodes):
    """The name of the node on which the test's ranks run."""
    return request.param


@pytest.fixture
def node_devices(node):
    """The devices of the node, in its order."""
    return NUMBERS if node == "numbered" else UUIDS


def start(group, name, *, devices, share, **more):
    """Ranks in the group's first and last bundles."""
    bundles = sorted({0, group.bundle_count - 1})
    seats = [Seat(group, bundle, local_rank, len(bundles)) for local_rank, bundle in enumerate(bundles)]
    names = [f"{name}{bundle}" for bundle in bundles]
    return create_ranks(
        RayClassWithInitArgs(Device), seats, names=names, num_gpus=share, devices_per_rank=devices, **more
    )


def call(ranks, method):
    return ray.get([getattr(rank, method).remote() for rank in ranks])


@pytest.fixture
def reserve(node):
    """Makes placement groups on the node, which are gone after the test, together with their ranks."""
    made = []

    def make(bundles, devices):
        bundle = {"CPU": 4, "GPU": devices, node: 0.01}
        group = placement_group([bundle] * bundles, strategy="STRICT_PACK")
        ray.get(group.ready())
        made.append(group)
        return group

    yield make
    for group in made:
        remove_placement_group(group)
    while ray.available_resources().get("GPU", 0) < 16:
        time.sleep(0.05)


@pytest.mark.parametrize(("bundles", "devices", "share"), [(4, 2, 0.5), (2, 4, 0.1), (1, 8, 0.3333)])
def test_each_rank_sees_its_bundles_devices_and_so_do_the_ranks_of_other_groups(
    node_devices, reserve, bundles, devices, share
):
    group = reserve(bundles, devices)
    expected = [[node_devices[:devices]], [node_devices[-devices:]]][:bundles]
    first = start(group, "first", devices=devices, share=share)
    assert call(first, "seen") == expected
    assert call(start(group, "second", devices=devices, share=share), "seen") == expected
    for rank in first:
        ray.kill(rank)
    assert call(start(group, "third", devices=devices, share=share), "seen") == expected


def test_devices_of_amd_are_reported_in_both_variables(node_devices, reserve):
    ranks = start(reserve(1, 8), "amd", devices=8, share=0.5, device_name="amd")
    assert call(ranks, "local_rank") == [("0", "1")]
    assert call(ranks, "seen") == [[node_devices] * 2]


@pytest.mark.parametrize("node", ["listed"], indirect=True)
def test_as_many_groups_as_shares_fit_into_a_bundle(node_devices, reserve):
    group = reserve(1, 8)
    for index in range(6):
        assert call(start(group, f"sixth{index}-", devices=8, share=1 / 6), "seen") == [[node_devices]]


@pytest.mark.parametrize("node", ["numbered"], indirect=True)
def test_a_node_that_is_not_all_the_pools_is_refused(reserve):
    group = reserve(2, 2)
    with pytest.raises(ValueError, match=r"has 8 GPU, of which .* holds 4: ranks with 2 each need nodes of their own"):
        start(group, "half", devices=2, share=0.5)


@pytest.mark.parametrize("node", ["numbered"], indirect=True)
def test_bundles_of_another_size_are_refused(reserve):
    with pytest.raises(ValueError, match=r"bundle 0 of .* has 4 GPU, not 2"):
        start(reserve(2, 4), "other", devices=2, share=0.5)


@pytest.mark.parametrize("node", ["numbered"], indirect=True)
@pytest.mark.parametrize(("devices", "share"), [(0, 0.5), (2, 1.5)])
def test_numbers_that_cannot_be(reserve, devices, share):
    with pytest.raises(ValueError, match="devices_per_rank must be at least 1"):
        start(reserve(1, 2), "wrong", devices=devices, share=share)
