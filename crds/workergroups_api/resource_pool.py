"""ResourcePool: processes reserved on accelerator nodes, verl's resource pool as a Kubernetes object."""

from enum import Enum
from typing import Annotated, Any

from pydantic import Field
from pydantic.fields import FieldInfo

from workergroups_api.model import ApiModel, ApiObject, cel, immutable, schema
from workergroups_api.plan import MAX_NODE_PROCESSES, MAX_POOL_NODES
from workergroups_api.pod_settings import (
    Agent,
    ClaimingResources,
    EnvFrom,
    EnvVars,
    Head,
    NameRef,
    NodeSelector,
    PodTemplate,
    PriorityClassName,
    Quantity,
    Setup,
    Tolerations,
    Volumes,
    resource_rules,
)
from workergroups_api.pool_status import ResourcePoolStatus
from workergroups_api.ray_node import RayNode
from workergroups_api.vocabulary import (
    IdleAction,
    MountedIn,
    OnDeadline,
    Preflight,
    Reservation,
    TopologyMode,
    UpdateStrategyType,
    Vendor,
)

DNS_1035 = "^[a-z]([-a-z0-9]*[a-z0-9])?$"
# The names of the objects that are created for a pool have suffixes, and KubeRay allows 53 characters.
MAX_NAME = 40
# Of the reference of an image.
MAX_IMAGE = 512

RESOURCE_NAMES = {Vendor.NVIDIA: "nvidia.com/gpu", Vendor.AMD: "amd.com/gpu"}
PRODUCT_LABELS = {Vendor.NVIDIA: "nvidia.com/gpu.product", Vendor.AMD: "amd.com/gpu.product-name"}
# What Ray and verl call Ascend's devices. To Ray, all others are GPUs: only of those, any vendor's can be shared.
_RAY_NAMES = {"ASCEND_RT_VISIBLE_DEVICES": "NPU"}
# The library sets these for NVIDIA and AMD.
_KNOWN_VISIBLE_DEVICES = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")

_RECREATE = "delete the pool and create it again"


class Shapes(Enum):
    """Marks a field of a pool that shapes pods, and says in its description when running pods get a change."""

    HEAD = "A running head gets a change at the pool's next restart."
    NODES = "Running nodes get a change at the pool's next restart."
    PODS = "Running nodes and a running head get a change at the pool's next restart."


def shapes(field: FieldInfo) -> Shapes | None:
    """Return the mark of a field; None if it shapes no pods, or can never change."""
    return next((mark for mark in field.metadata if isinstance(mark, Shapes)), None)


def dns_name(field: str) -> dict[str, Any]:
    """Schema extras of a string that becomes part of object names."""
    return schema(
        cel(
            f"self.matches('{DNS_1035}')",
            f"{field} must be lower-case letters, digits and '-', beginning with a letter: rename it",
        )
    )


def metadata_name(kind: str) -> dict[str, str]:
    """The same rule for the object's own name."""
    return cel(
        f"self.metadata.name.matches('{DNS_1035}') && size(self.metadata.name) <= {MAX_NAME}",
        f"metadata.name of a {kind} must be at most {MAX_NAME} lower-case letters, digits and '-', beginning with "
        "a letter: choose another name",
    )


class Accelerator(ApiModel):
    """The devices of each process."""

    vendor: Annotated[
        Vendor,
        Field(
            description="The vendor of the accelerator; `none` for processes that use CPUs only. `other` needs "
            "resourceName and visibleDevicesEnv."
        ),
    ] = Vendor.NVIDIA
    product: Annotated[
        str | None,
        Field(
            max_length=63,
            description="Use only nodes with this product: a value of the node label `nvidia.com/gpu.product` or "
            "`amd.com/gpu.product-name`. Default: any product. For other vendors, use `spec.nodeSelector`.",
            json_schema_extra=schema(
                cel(
                    "self.matches('^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",
                    "spec.accelerator.product must be a label value: copy it from `kubectl get nodes --show-labels`",
                )
            ),
        ),
    ] = None
    resource_name: Annotated[
        str | None,
        Field(
            max_length=253,
            description="The extended resource that pods request, such as `huawei.com/Ascend910`. Default: "
            "`nvidia.com/gpu` or `amd.com/gpu`.",
            json_schema_extra=schema(
                cel(
                    "self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",
                    "spec.accelerator.resourceName must be a qualified name such as nvidia.com/gpu: add the domain",
                )
            ),
        ),
    ] = None
    visible_devices_env: Annotated[
        str | None,
        Field(
            max_length=64,
            description="For vendor `other`: the environment variable that selects the devices of a process by their "
            "numbers, such as ASCEND_RT_VISIBLE_DEVICES, HABANA_VISIBLE_MODULES or TPU_VISIBLE_CHIPS.",
            json_schema_extra=schema(
                cel(
                    "self.matches('^[A-Z][A-Z0-9_]*$')",
                    "spec.accelerator.visibleDevicesEnv must be the name of an environment variable: capital letters, "
                    "digits and '_', beginning with a letter",
                )
            ),
        ),
    ] = None
    per_process: Annotated[
        int, Field(ge=1, le=64, description="Devices of each process. Its ranks see all of them and no others.")
    ] = 1

    @property
    def resource(self) -> str | None:
        """The extended resource that a pod asks for, None on CPUs."""
        return self.resource_name or RESOURCE_NAMES.get(self.vendor)

    @property
    def ray_name(self) -> str:
        """What Ray calls the devices."""
        return _RAY_NAMES.get(self.visible_devices_env or "", "GPU")


ACCELERATOR_RULES = schema(
    cel(
        "self.vendor != 'none' || !has(self.product)",
        "spec.accelerator.product needs an accelerator: set spec.accelerator.vendor to nvidia or amd, or remove "
        "product",
        ".product",
    ),
    cel(
        "self.vendor != 'none' || !has(self.resourceName)",
        "spec.accelerator.resourceName needs an accelerator: set spec.accelerator.vendor to its vendor or to other, or "
        "remove resourceName",
        ".resourceName",
    ),
    cel(
        "self.vendor != 'none' || self.perProcess == 1",
        "spec.accelerator.perProcess needs an accelerator: set spec.accelerator.vendor to its vendor or to other, or "
        "remove perProcess",
        ".perProcess",
    ),
    cel(
        "self.vendor != 'other' || (has(self.resourceName) && has(self.visibleDevicesEnv))",
        "spec.accelerator.vendor other needs the names of a resource and of a variable: set resourceName and "
        "visibleDevicesEnv, such as huawei.com/Ascend910 and ASCEND_RT_VISIBLE_DEVICES",
        ".vendor",
    ),
    cel(
        "self.vendor != 'other' || !has(self.product)",
        "spec.accelerator.product selects nodes by a label of NVIDIA or AMD: for vendor other, remove it, and set the "
        "label in spec.nodeSelector",
        ".product",
    ),
    cel(
        "self.vendor == 'other' || !has(self.visibleDevicesEnv)",
        "spec.accelerator.visibleDevicesEnv is for vendor other: remove it, or set spec.accelerator.vendor to other",
        ".visibleDevicesEnv",
    ),
    cel(
        f"!has(self.visibleDevicesEnv) || !(self.visibleDevicesEnv in {list(_KNOWN_VISIBLE_DEVICES)!r})",
        "spec.accelerator.visibleDevicesEnv is a variable of NVIDIA or AMD: for devices that use it, set "
        "spec.accelerator.vendor to nvidia or amd, and keep resourceName",
        ".visibleDevicesEnv",
    ),
)


# Its domains are single nodes.
HOSTNAME_LABEL = "kubernetes.io/hostname"


class Topology(ApiModel):
    """How close to each other the pool's nodes must be in the network."""

    key: Annotated[
        str,
        Field(
            min_length=1,
            max_length=316,
            description="The node label whose values are the domains, such as `nvidia.com/gpu.clique`. Nodes of one "
            "domain get adjacent numbers, and so do their ranks.",
            json_schema_extra=schema(
                cel(
                    "self.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",
                    "spec.topology.key must be the key of a node label: copy it from `kubectl get nodes --show-labels`",
                )
            ),
        ),
    ] = HOSTNAME_LABEL
    mode: Annotated[
        TopologyMode,
        Field(
            description="Required: all nodes of the pool are in one domain. Preferred: in one domain if possible. "
            "Spread: each node is in a different domain."
        ),
    ] = TopologyMode.PREFERRED


class Idle(ApiModel):
    """When an idle pool gives back its devices."""

    after_seconds: Annotated[
        int,
        Field(
            ge=60,
            le=2592000,
            description="The operator suspends or deletes the pool after it has been idle for this many seconds: it is "
            "ready, no group wants it, and no driver is connected to its Ray cluster.",
        ),
    ]
    action: Annotated[
        IdleAction,
        Field(
            description="Suspend: the pool gives back its devices, and starts again when it is used. Delete: "
            "the operator also deletes the pool, unless a group names it. A pool that only suspended groups name stays "
            "suspended until the last of them is deleted."
        ),
    ] = IdleAction.SUSPEND


class UpdateStrategy(ApiModel):
    """When the pool's pods are replaced by pods of the present spec."""

    type: Annotated[
        UpdateStrategyType,
        Field(
            description="OnRestart: only on request, by `workergroups restart` or the annotation "
            "workergroups.dev/restarted-at. RollingUpdate: also after a change of the spec, as soon as no group has "
            "live ranks on the pool. Programs that use the pool without a WorkerGroup do not delay it."
        ),
    ] = UpdateStrategyType.ON_RESTART


class ResourcePoolSpec(ApiModel):
    """What the user wants."""

    nodes: Annotated[
        int,
        Field(
            ge=1,
            le=MAX_POOL_NODES,
            description="Number of pods; each pod is a node of the Ray cluster. `kubectl scale` changes it. Nodes that "
            "have bundles keep them when the pool grows, and a node with a group's ranks stays when it shrinks.",
        ),
    ] = 1
    processes_per_node: Annotated[
        int,
        Field(
            ge=1,
            le=MAX_NODE_PROCESSES,
            description="Processes on each node. Each process has one bundle of the node's placement group.",
        ),
    ]
    cluster_name: Annotated[
        str | None,
        Field(
            max_length=MAX_NAME,
            description="Name of the RayCluster. Pools with the same clusterName share one. Default: the pool's name.",
            json_schema_extra=dns_name("spec.clusterName"),
        ),
    ] = None
    accelerator: Annotated[
        Accelerator, Field(description="The devices of each process.", json_schema_extra=ACCELERATOR_RULES)
    ] = Accelerator()
    topology: Annotated[
        Topology, Field(description="How close to each other the pool's nodes must be in the network.")
    ] = Topology()
    max_colocate_count: Annotated[
        int,
        Field(
            ge=1,
            le=100,
            description="How many groups can share the devices of a process. All of them see the same devices.",
        ),
    ] = 10
    spare_cpus: Annotated[
        int | None,
        Field(
            ge=0,
            le=1000,
            description="Number of logical CPUs that Ray counts on each node in addition to those of the bundles, for "
            "tasks and actors that are no ranks. Default: 24, which the helpers of verl's trainers need, or "
            "`resources.requests.cpu` if that is more.",
        ),
    ] = None
    ray: Annotated[
        RayNode, Field(description="What Ray knows each node of the pool by, besides its devices."), Shapes.NODES
    ] = RayNode()
    reservation: Annotated[
        Reservation,
        Field(
            description="Eager: the agent reserves a bundle for each process, for WorkerGroups, `attach_pool` and "
            "verl's own pools. None: nothing is reserved; for programs that create their own placement groups, such as "
            "SkyRL, OpenRLHF and slime (which also needs `head.spareCpus: 1`)."
        ),
    ] = Reservation.EAGER
    image: Annotated[
        str | None,
        Field(
            max_length=MAX_IMAGE,
            description="Any image with `ray[default]` 2.52 or later on Python 3.10 or later. Default: the value "
            "`worker.image` of the Helm chart.",
            json_schema_extra=schema(
                cel(
                    "self.matches('^[^\\\\s]+$')",
                    "spec.image must be an image reference without spaces, or be left out for the default",
                )
            ),
        ),
        Shapes.PODS,
    ] = None
    image_pull_secrets: Annotated[
        tuple[NameRef, ...],
        Field(
            max_length=16,
            description="Secrets with credentials for the image's registry. Head and agent use them too, unless "
            "spec.head.imagePullSecrets or spec.agent.imagePullSecrets is set.",
        ),
        Shapes.PODS,
    ] = ()
    env: Annotated[
        EnvVars,
        Field(description="Environment variables of the head and the nodes, and so of drivers and ranks."),
        Shapes.PODS,
    ] = ()
    env_from: Annotated[
        tuple[EnvFrom, ...],
        Field(max_length=32, description="Secrets and ConfigMaps whose keys become environment variables too."),
        Shapes.PODS,
    ] = ()
    volumes: Annotated[
        Volumes,
        Field(description="Volumes, each with its mount, of the head and the nodes, and so of drivers and ranks."),
        Shapes.PODS,
    ] = ()
    tls: Annotated[
        bool,
        Field(
            description="Whether Ray's processes encrypt what they send each other, and refuse connections without a "
            "certificate of the cluster; see docs/install.md. It does not apply to the collectives of ranks, such as "
            "NCCL's. A pool can ask for it only on a cluster that began with it."
        ),
    ] = False
    setup: Annotated[
        Setup | None,
        Field(
            description="A script that prepares head and nodes before Ray starts, such as one that creates a virtual "
            "environment on a volume. The operator checks the image afterwards, so `env` may put the script's Python "
            "on PATH."
        ),
        Shapes.PODS,
    ] = None
    resources: Annotated[
        ClaimingResources,
        Field(
            description="What each node requests, and may use, in addition to the accelerators. By default, it "
            "requests 100m CPU and 256Mi, without limits.",
            json_schema_extra=resource_rules("spec.resources"),
        ),
        Shapes.NODES,
    ] = ClaimingResources()
    shared_memory: Annotated[
        Quantity | None,
        Field(
            description="Size of /dev/shm in the head and the nodes, such as 128Gi. What it holds counts as memory of "
            "the pod. Default: as much as the memory limit of the pod, or as the memory of its Kubernetes node if it "
            "has no limit."
        ),
        Shapes.PODS,
    ] = None
    node_selector: Annotated[
        NodeSelector,
        Field(description="Labels that the Kubernetes nodes must have, in addition to the product's label."),
        Shapes.PODS,
    ] = {}
    tolerations: Annotated[
        Tolerations,
        Field(
            description="Taints that the pool's pods tolerate, in addition to a taint with the accelerator's resource "
            "name as its key."
        ),
        Shapes.PODS,
    ] = ()
    priority_class_name: Annotated[
        PriorityClassName | None,
        Field(description="PriorityClass of the pool's pods. Head and agent have it too, unless they set their own."),
        Shapes.PODS,
    ] = None
    agent: Annotated[
        Agent | None,
        Field(description="Settings of the agent's pod. If several pools share a cluster, the oldest pool's apply."),
    ] = None
    head: Annotated[
        Head | None,
        Field(description="Settings of the head's pod. If several pools share a cluster, the oldest pool's apply."),
        Shapes.HEAD,
    ] = None
    pod_template: Annotated[
        PodTemplate | None,
        Field(
            description="Merged into the pods of the pool's nodes, as a strategic merge patch is: entries of "
            "containers, initContainers, volumes and imagePullSecrets by their names. Tolerations and terms of an "
            "affinity are added to those of the operator. Ray's container is `ray-worker`."
        ),
        Shapes.PODS,
    ] = None
    suspend: Annotated[
        bool,
        Field(
            description="true: the pool has no pods and holds no devices. Its ranks and jobs end; the pool, its groups "
            "and their statuses stay. false: it starts again, and its groups get new ranks."
        ),
    ] = False
    idle: Annotated[
        Idle | None,
        Field(
            description="Suspend or delete the pool if it is idle. A group that is created or resumed on it wakes "
            "it, and so does `workergroups job submit`, or another value of the annotation workergroups.dev/wake-at. "
            "Default: it keeps its devices."
        ),
    ] = None
    update_strategy: Annotated[
        UpdateStrategy, Field(description="When pods are replaced by pods of the present spec.")
    ] = UpdateStrategy()
    progress_deadline_seconds: Annotated[
        int,
        Field(
            ge=5,
            le=604800,
            description="If the pool is not ready after this many seconds, Progressing is False, with the reason "
            "ProgressDeadlineExceeded. The operator keeps trying.",
        ),
    ] = 600

    on_deadline: Annotated[
        OnDeadline,
        Field(
            description="What happens if the pool has not got all its nodes after progressDeadlineSeconds. Wait: it "
            "keeps those that it has. Release: it gives them back, so that another pool can use them, and tries again "
            "after a pause, which grows from try to try and differs from pool to pool."
        ),
    ] = OnDeadline.WAIT
    preflight: Annotated[
        Preflight,
        Field(
            description="What is checked before the pool is ready and groups are launched on it, as by `workergroups "
            "check`. None: nothing. Basic: each node has the devices, the shared memory and the writable volumes that "
            "the spec asks for, the versions are equal, and nodes reach each other. Fabric: also an all-reduce over "
            "all processes, whose speed is reported. Nodes that replace others, or are added, get the basic check."
        ),
    ] = Preflight.NONE

    @property
    def is_reserved(self) -> bool:
        """Whether a bundle is reserved for each process."""
        return self.reservation is Reservation.EAGER

    @property
    def devices_per_node(self) -> int:
        """How many devices each node has; 0 on CPUs."""
        is_on_cpus = self.accelerator.vendor is Vendor.NONE
        return 0 if is_on_cpus else self.processes_per_node * self.accelerator.per_process

    @property
    def writable_directories(self) -> tuple[str, ...]:
        """Where the nodes mount volumes that are not read-only."""
        return tuple(volume.mount_path for volume in self.volumes if volume.is_in_nodes and not volume.read_only)

    @property
    def head_setup(self) -> Setup | None:
        """The script that the head runs before Ray starts."""
        return None if self.setup is None or self.setup.pods is MountedIn.NODES else self.setup

    @property
    def node_setup(self) -> Setup | None:
        """The script that each node runs before Ray starts."""
        return None if self.setup is None or self.setup.pods is MountedIn.HEAD else self.setup

    @property
    def described_accelerators(self) -> str:
        """Return how many devices of which kind all nodes have together, for people."""
        accelerator = self.accelerator
        kind = accelerator.product or accelerator.resource
        return f"{self.nodes * self.devices_per_node} x {kind}" if self.devices_per_node else Vendor.NONE.value


SPEC_RULES = schema(
    cel(
        "!has(self.nodeSelector) || !has(self.accelerator.product) || "
        "!self.nodeSelector.exists(k, k in ['nvidia.com/gpu.product', 'amd.com/gpu.product-name'])",
        "spec.nodeSelector must not repeat the product label: spec.accelerator.product sets it; remove one of the two",
        ".nodeSelector",
    ),
    cel(
        "!has(self.nodeSelector) || self.nodeSelector.all(k, "
        "k.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$') && "
        "self.nodeSelector[k].matches('^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$'))",
        "spec.nodeSelector must hold label keys and values: copy them from `kubectl get nodes --show-labels`",
        ".nodeSelector",
    ),
    cel(
        "!has(self.env) || !has(self.accelerator.visibleDevicesEnv) || "
        "!self.env.exists(v, v.name == self.accelerator.visibleDevicesEnv)",
        "spec.env[].name is spec.accelerator.visibleDevicesEnv, which WorkerGroups sets for each rank: remove it",
        ".env",
    ),
    *(
        immutable(field, _RECREATE)
        for field in (
            "processesPerNode",
            "clusterName",
            "accelerator",
            "topology",
            "maxColocateCount",
            "spareCpus",
            "reservation",
            "tls",
        )
    ),
)


class ResourcePool(ApiObject):
    """A set of processes that are reserved on accelerator nodes."""

    spec: Annotated[ResourcePoolSpec, Field(description="The desired state.", json_schema_extra=SPEC_RULES)]
    status: Annotated[ResourcePoolStatus, Field(description="The observed state.")] = ResourcePoolStatus()

    @property
    def cluster(self) -> str:
        """Name of the RayCluster that the pool is part of."""
        return self.spec.cluster_name or self.name

    @property
    def is_reserved(self) -> bool:
        """Whether a bundle is reserved for each process."""
        return self.spec.is_reserved

    @property
    def has_domains(self) -> bool:
        """Whether its nodes are numbered along a topology, in which several of them may be in one domain."""
        return self.is_reserved and self.spec.topology.key != HOSTNAME_LABEL

    @property
    def world_size(self) -> int:
        """How many processes, and so bundles, the pool has."""
        return self.spec.nodes * self.spec.processes_per_node


OBJECT_RULES = schema(metadata_name("ResourcePool"))
