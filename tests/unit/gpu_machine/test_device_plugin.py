"""The device plugin offers each GPU of the machine, and gives a container those that it was allocated."""

from pathlib import Path

import pytest

from tools.gpu_machine import device_plugin
from tools.gpu_machine.device_messages import MESSAGES
from tools.gpu_machine.layout import DRIVER

FILES = [Path("/dev", name) for name in ("nvidia-uvm", "nvidia0", "nvidia1", "nvidia10", "nvidiactl")]


@pytest.fixture(autouse=True)
def files(monkeypatch):
    monkeypatch.setattr(device_plugin, "_device_files", lambda: FILES)


def over_the_wire(message):
    return type(message).FromString(message.SerializeToString())


def test_gpus_are_offered_by_their_numbers():
    first = next(device_plugin.list_and_watch(("0", "1", "10"), None, None))
    assert [(each.ID, each.health) for each in over_the_wire(first).devices] == [
        (number, "Healthy") for number in ("0", "1", "10")
    ]


def test_a_container_gets_its_own_gpus_what_controls_all_of_them_and_the_driver():
    asked = MESSAGES["AllocateRequest"]()
    asked.container_requests.add(devices_ids=["1"])
    (given,) = over_the_wire(device_plugin.allocate(over_the_wire(asked), None)).container_responses
    assert [each.host_path for each in given.devices] == ["/dev/nvidia-uvm", "/dev/nvidia1", "/dev/nvidiactl"]
    assert {(each.container_path == each.host_path, each.permissions) for each in given.devices} == {(True, "rw")}
    assert [(each.host_path, each.container_path, each.read_only) for each in given.mounts] == [(DRIVER, DRIVER, True)]
