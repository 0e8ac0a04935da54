"""A rank sees exactly the devices of its bundle."""

import pytest

import workergroups
from tests.ray.agent.planned import Group, pool
from tests.ray.agent.test_executor import all_ready


def seen(name):
    return workergroups.attach(name).execute_all_sync("environment", "CUDA_VISIBLE_DEVICES")


@pytest.mark.parametrize(("devices", "expected"), [(2, ["0,1", "2,3"]), (4, ["0,1,2,3"] * 2)])
def test_a_rank_sees_all_devices_of_its_bundle_and_so_does_the_other_group_there(agent, devices, expected):
    groups = [Group(name, bundles=(("actors", 0, 2),)) for name in ("trainer", "reference")]
    agent.until(all_ready, *groups, pools=(pool(devices=devices),))
    assert seen("trainer") == seen("reference") == expected
