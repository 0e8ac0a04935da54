"""What a node says that it has, from what its kernel and its tools show."""

import threading
from types import SimpleNamespace

import pytest
from ray.core.generated import gcs_pb2
from ray.exceptions import RayTaskError

from workergroups.checking import node, probes
from workergroups.checking.all_reduce import _reason
from workergroups.errors import LateCallError, PoolNotFoundError

LISTED = """\
GPU 0: NVIDIA H200 (UUID: GPU-1c6a1b7e-0000-0000-0000-000000000000)
GPU 1: NVIDIA H200 (UUID: GPU-2c6a1b7e-0000-0000-0000-000000000000)
"""
DIVIDED = """\
GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5c6a1b7e-0000-0000-0000-000000000000)
  MIG 3g.20gb     Device  0: (UUID: MIG-GPU-5c6a1b7e/1/0)
  MIG 1g.5gb      Device  1: (UUID: MIG-GPU-5c6a1b7e/2/0)
"""


@pytest.mark.parametrize(
    ("listed", "found"),
    [(LISTED, ["NVIDIA H200"] * 2), (DIVIDED, ["MIG 3g.20gb", "MIG 1g.5gb"]), ("No devices found.\n", [])],
)
def test_devices_are_counted_as_nvidia_smi_lists_them(listed, found):
    assert node.nvidia_devices(listed) == found


@pytest.mark.parametrize("warning", ["", "WARNING: infoROM is corrupted at gpu 0000:3B:00.0\n", "\n"])
def test_the_driver_is_told_whatever_nvidia_smi_warns_of(warning):
    assert node.nvidia_drivers(f"{warning}570.133.20\n 570.133.20\n{warning}") == ["570.133.20"] * 2


def question(**more):
    asked = {"vendor": "none", "devices": 1, "device": "GPU", "writable": [], "fabric": False}
    defaults = {
        "nodes": 1,
        "node_ids": None,
        "shared_memory": None,
        "placement_name": "",
        "processes": 1,
        "is_reserved": True,
    }
    return {"pool": "ppo", "node_group": "", **defaults, **asked, **more}


def tool(folder, monkeypatch, script):
    (folder / "nvidia-smi").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")


def test_a_node_says_how_many_devices_of_which_model_and_driver_it_has(tmp_path, monkeypatch):
    (tmp_path / "listed").write_text(LISTED)
    tool(tmp_path, monkeypatch, f'[ "$1" = -L ] && cat {tmp_path}/listed || printf "570.1\\n570.1\\n"')
    said = node.look("pod", question(vendor="nvidia"))
    assert (said["devices"], said["troubles"]) == (2, {})
    assert (said["versions"]["device"], said["versions"]["driver"]) == ("NVIDIA H200", "570.1")
    assert said["shared_memory"] > 0


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo 'Unable to determine the device handle'; exit 15", "nvidia-smi: Unable to determine the device handle"),
        ("sleep 5", "nvidia-smi has not ended within 0.2 s"),
    ],
)
def test_a_node_that_cannot_count_its_devices_says_why(tmp_path, monkeypatch, script, why):
    monkeypatch.setattr(node, "_COMMAND_SECONDS", 0.2)
    tool(tmp_path, monkeypatch, script)
    said = node.look("pod", question(vendor="nvidia"))
    assert (said["devices"], said["troubles"]["devices"]) == (None, why)


def test_without_the_tool_that_is_what_is_reported(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "there is no nvidia-smi" in node.look("pod", question(vendor="nvidia"))["troubles"]["devices"]


def test_nobody_counts_the_devices_of_other_vendors():
    said = node.look("pod", question(vendor="other"))
    assert (said["devices"], said["troubles"].get("devices")) == (None, None)


def test_a_directory_is_writable_if_a_file_can_be_written_there(tmp_path):
    assert node.unwritable([str(tmp_path), str(tmp_path / "absent")]) == {
        str(tmp_path / "absent"): "No such file or directory"
    }
    assert list(tmp_path.iterdir()) == []


def test_a_directory_whose_server_does_not_answer_is_reported(tmp_path, monkeypatch):
    test_is_over = threading.Event()

    def hang(**_):
        test_is_over.wait(10)
        raise OSError

    monkeypatch.setattr(node, "_WRITE_SECONDS", 0.1)
    monkeypatch.setattr(node.tempfile, "TemporaryFile", hang)
    assert node.unwritable([str(tmp_path)]) == {str(tmp_path): "no answer within 0.1 s"}
    test_is_over.set()


def test_adapters_are_read_as_the_kernel_shows_them(tmp_path):
    device = tmp_path / "sys/class/infiniband/mlx5_0"
    for name, text in {
        "device/infiniband_verbs/uverbs3/dev": "231:3",
        "ports/1/state": "4: ACTIVE",
        "ports/1/link_layer": "Ethernet",
        "ports/1/rate": "200 Gb/sec (4X HDR)",
        "ports/1/gids/0": "fe80:0000:0000:0000:0000:0000:0000:0001",
        "ports/1/gids/3": "0000:0000:0000:0000:0000:ffff:0a00:0001",
        "ports/1/gids/4": "0000:0000:0000:0000:0000:0000:0000:0000",
        "ports/1/gid_attrs/ndevs/0": "ens1",
        "ports/1/gid_attrs/types/0": "IB/RoCE v1",
        "ports/1/gid_attrs/types/3": "RoCE v2",
    }.items():
        (device / name).parent.mkdir(parents=True, exist_ok=True)
        (device / name).write_text(f"{text}\n")
    found = {
        "name": "mlx5_0",
        "port": 1,
        "interface": "ens1",
        "state": "ACTIVE",
        "link": "Ethernet",
        "rate": "200 Gb/sec (4X HDR)",
        "is_usable": False,
        "gids": {"0": "IB/RoCE v1", "3": "RoCE v2"},
    }
    assert node.adapters(tmp_path) == [found]
    (tmp_path / "dev/infiniband/uverbs3").mkdir(parents=True)
    assert node.adapters(tmp_path) == [found | {"is_usable": True}]


def test_settings_are_read_in_the_order_in_which_nccl_looks(tmp_path):
    of_node, of_user = tmp_path / "nccl.conf", tmp_path / "user.conf"
    of_node.write_text("# for all\nNCCL_P2P_DISABLE = 1\nNCCL_ALGO=Ring\nNCCL_PROTO=LL\nPATH=/bin\nNCCL_DEBUG\n")
    of_node.write_bytes(of_node.read_bytes() + b"\xff\n")
    of_user.write_text("NCCL_ALGO=Tree\nNCCL_PROTO=Simple")
    variables = {"NCCL_CONF_FILE": str(of_user), "NCCL_PROTO": "LL128", "HOME": "/root"}
    assert node.nccl_settings(variables, of_node) == {
        **{"NCCL_P2P_DISABLE": "1", "NCCL_ALGO": "Tree", "NCCL_PROTO": "LL128"},
        "NCCL_CONF_FILE": str(of_user),
    }
    assert node.nccl_settings({}, tmp_path / "none") == {}


def test_a_node_without_adapters_has_none(tmp_path):
    assert node.adapters(tmp_path) == []


NCCL = RuntimeError("NCCL error in: NCCLUtils.cpp:94\nncclUnhandledCudaError: Call failed.\nLast error:\n608 bytes")
LATE = LateCallError("'start' has not ...", "start", [1], 60.2, {1: "rank 1: PENDING_CREATION: no room\nmore"})
RAISED = RayTaskError("measure", "Traceback", NCCL).as_instanceof_cause()


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (LATE, "it has not ended within 60 s: rank 1: PENDING_CREATION: no room"),
        (
            RAISED,
            "RuntimeError: NCCL error in: NCCLUtils.cpp:94 ncclUnhandledCudaError: Call failed. Last error: 608 bytes",
        ),
        (PoolNotFoundError("1 of 2 nodes have their bundles"), "1 of 2 nodes have their bundles"),
        (MemoryError(), "MemoryError"),
    ],
)
def test_why_nothing_was_measured_is_reported_in_one_line(error, said):
    assert _reason(error) == said


def test_a_node_has_the_name_of_its_pod_whatever_its_host_is_called(monkeypatch):
    def node_info(pod, host, node_group="ppo-1", **more):
        return gcs_pb2.GcsNodeInfo(
            node_id=pod.encode() or b"x",
            instance_id=pod,
            node_manager_hostname=host,
            node_manager_address="10.0.0.1",
            labels={"ray.io/node-group": node_group},
            **more,
        )

    nodes = [
        node_info("ppo-worker-b", "machine-1"),
        node_info("ppo-worker-a", "machine-2"),
        node_info("", "host-without-a-pod"),
        node_info("ppo-worker-dead", "machine-3", state=gcs_pb2.GcsNodeInfo.DEAD),
        node_info("head", "machine-1", node_group="headgroup"),
    ]
    monkeypatch.setattr(probes.Gcs, "of_driver", lambda: SimpleNamespace(nodes=lambda: nodes))
    assert [each.name for each in probes.nodes_of("ppo-1")] == ["host-without-a-pod", "ppo-worker-a", "ppo-worker-b"]
