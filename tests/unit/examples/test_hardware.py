"""What the pods of examples/hardware have, as the operator's templates make them."""

import json
from pathlib import Path

import pytest
import yaml

from tests.unit.operator.make import metadata, observed, wanted
from workergroups_api.resource_pool import ResourcePool

FOLDER = Path(__file__).parents[3] / "examples" / "hardware"
FILES = sorted(path.name for path in FOLDER.glob("*.yaml") if path.name != "group.yaml")
CHECKPOINTS = {"claimName": "checkpoints"}
TOKEN = {"secretKeyRef": {"name": "huggingface", "key": "token"}}
IPC_LOCK = {"capabilities": {"add": ["IPC_LOCK"]}}


class Pods:
    """The pods of an example's head and nodes."""

    def __init__(self, file):
        manifest = yaml.safe_load((FOLDER / file).read_text())
        self.pool = ResourcePool.model_validate({**manifest, "metadata": metadata(manifest["metadata"]["name"])})
        (self.cluster,) = [
            each for each in wanted(observed(pools=(self.pool,), pods=())) if each["kind"] == "RayCluster"
        ]
        (self.group,) = self.cluster["spec"]["workerGroupSpecs"]
        self.template = self.group["template"]
        self.spec = self.template["spec"]
        (self.container,) = self.spec["containers"]
        self.head = self.cluster["spec"]["headGroupSpec"]["template"]["spec"]

    @property
    def env(self):
        return {each["name"]: each.get("value", each.get("valueFrom")) for each in self.container["env"]}

    def requested(self, name):
        """How much of a resource the node requests, which is also its limit."""
        parts = self.container["resources"]
        assert parts["requests"][name] == parts["limits"][name]
        return parts["requests"][name]

    def volume(self, path, spec=None):
        """The volume that is mounted there."""
        spec = spec or self.spec
        (mount,) = [each for each in spec["containers"][0]["volumeMounts"] if each["mountPath"] == path]
        return next(each for each in spec["volumes"] if each["name"] == mount["name"])


@pytest.mark.parametrize("file", FILES)
def test_each_is_a_pool_of_two_nodes_with_eight_devices(file):
    pods = Pods(file)
    assert (pods.group["replicas"], pods.requested(pods.pool.spec.accelerator.resource)) == (2, "8")
    assert pods.pool.name == yaml.safe_load((FOLDER / "group.yaml").read_text())["metadata"]["name"]
    assert pods.requested("memory").endswith("00Gi")
    assert pods.volume("/dev/shm")["emptyDir"]["sizeLimit"] == "256Gi"
    assert pods.env["HF_TOKEN"] == TOKEN
    assert pods.env["GLOO_SOCKET_IFNAME"]
    assert pods.env.keys() & {"NCCL_SOCKET_IFNAME", "HCCL_SOCKET_IFNAME"}
    for spec in (pods.spec, pods.head):
        assert pods.volume("/checkpoints", spec)["persistentVolumeClaim"] == CHECKPOINTS


@pytest.mark.parametrize("file", ["nvidia-infiniband.yaml", "amd.yaml"])
def test_with_infiniband_the_nodes_have_adapters_and_may_lock_memory(file):
    pods = Pods(file)
    assert pods.requested("rdma/hca_shared_devices_a") == "1"
    assert pods.container["securityContext"] == IPC_LOCK
    assert pods.env["NCCL_IB_HCA"] == "mlx5"
    for spec in (pods.spec, pods.head):
        assert pods.volume("/cache", spec)["hostPath"]["type"] == "DirectoryOrCreate"


def test_megatron_has_its_variable_although_the_driver_sees_no_gpu():
    pods = Pods("nvidia-infiniband.yaml")
    assert pods.env["CUDA_DEVICE_MAX_CONNECTIONS"] == "1"
    assert {"name": "CUDA_DEVICE_MAX_CONNECTIONS", "value": "1"} in pods.head["containers"][0]["env"]
    assert pods.spec["runtimeClassName"] == "nvidia"
    assert "runtimeClassName" not in pods.head


def test_in_the_network_of_the_nodes_they_find_the_head_and_are_one_on_each():
    pods = Pods("nvidia-host-network.yaml")
    assert (pods.spec["hostNetwork"], pods.spec["dnsPolicy"]) == (True, "ClusterFirstWithHostNet")
    (term,) = pods.spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["topologyKey"] == "kubernetes.io/hostname"
    assert pods.env["NCCL_SOCKET_IFNAME"] == "bond0"
    assert pods.volume("/dev/infiniband")["hostPath"]["path"] == "/dev/infiniband"
    assert "hostNetwork" not in pods.head
    assert "bond0" not in json.dumps(pods.head)


def test_a_second_network_comes_by_annotation_to_the_nodes_only():
    pods = Pods("nvidia-second-network.yaml")
    assert pods.template["metadata"]["annotations"]["k8s.v1.cni.cncf.io/networks"] == "rdma-a, rdma-b"
    assert pods.requested("nvidia.com/sriov_rdma") == "2"
    assert pods.env["NCCL_SOCKET_IFNAME"] == "net1,net2"
    assert pods.container["securityContext"] == IPC_LOCK
    assert "net1" not in json.dumps(pods.cluster["spec"]["headGroupSpec"])


def test_with_efa_the_nodes_have_interfaces_and_huge_pages_in_one_zone():
    pods = Pods("nvidia-efa.yaml")
    assert (pods.requested("vpc.amazonaws.com/efa"), pods.requested("hugepages-2Mi")) == ("32", "5120Mi")
    assert pods.spec["nodeSelector"] == {"node.kubernetes.io/instance-type": "p5.48xlarge"}
    assert "nodeSelector" not in pods.head
    (term,) = pods.spec["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["topologyKey"] == "topology.kubernetes.io/zone"
    assert pods.env["FI_PROVIDER"] == "efa"


@pytest.mark.parametrize(
    ("file", "platform"), [("amd.yaml", "amd"), ("amd-without-device-plugin.yaml", "amd"), ("ascend.yaml", "huawei")]
)
def test_verl_is_told_the_platform_that_its_driver_does_not_see(file, platform):
    pods = Pods(file)
    for spec in (pods.spec, pods.head):
        assert {"name": "VERL_PLATFORM", "value": platform} in spec["containers"][0]["env"]


def test_ray_counts_ascends_devices_under_their_own_name():
    pods = Pods("ascend.yaml")
    assert pods.group["rayStartParams"]["resources"] == """'{"NPU": 8}'"""
    assert pods.volume("/usr/local/Ascend/driver")["hostPath"]["type"] == "Directory"


def test_without_a_device_plugin_the_runtime_gives_nvidias_devices():
    pods = Pods("nvidia-without-device-plugin.yaml")
    assert pods.requested("example.com/gpu") == "8"
    assert (pods.spec["runtimeClassName"], pods.env["NVIDIA_VISIBLE_DEVICES"]) == ("nvidia", "all")
    assert pods.group["rayStartParams"]["num-gpus"] == "8"


def test_without_a_device_plugin_amds_devices_are_files_of_the_node():
    pods = Pods("amd-without-device-plugin.yaml")
    assert pods.requested("example.com/gpu") == "8"
    assert pods.volume("/dev/kfd")["hostPath"] == {"path": "/dev/kfd", "type": "CharDevice"}
    assert pods.volume("/dev/dri")["hostPath"] == {"path": "/dev/dri", "type": "Directory"}
    assert pods.container["securityContext"] == {"privileged": True}
    assert pods.spec["securityContext"]["supplementalGroups"] == [44, 109]
    assert "/dev/kfd" not in json.dumps(pods.head)
