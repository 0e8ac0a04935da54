"""ResourcePool: processes reserved on accelerator nodes, verl's resource pool as a Kubernetes object."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from workergroups_api.conditions import Conditions
from workergroups_api.model import ApiModel, ApiObject, cel, immutable, schema
from workergroups_api.pod_settings import (
    Agent,
    EnvFrom,
    EnvVars,
    Head,
    NameRef,
    NodeSelector,
    PodTemplate,
    PriorityClassName,
    Quantity,
    Resources,
    Tolerations,
    Volumes,
)
from workergroups_api.report import PoolReport

DNS_1035 = "^[a-z]([-a-z0-9]*[a-z0-9])?$"
# Leaves room for the suffixes of the objects made from it; KubeRay allows 53.
MAX_NAME = 40

RESOURCE_NAMES = {"nvidia": "nvidia.com/gpu", "amd": "amd.com/gpu"}
PRODUCT_LABELS = {"nvidia": "nvidia.com/gpu.product", "amd": "amd.com/gpu.product-name"}

_RECREATE = "delete the pool and create it again"


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
        Literal["nvidia", "amd", "none"],
        Field(description="Who makes the accelerator; `none` for processes on CPUs only."),
    ] = "nvidia"
    product: Annotated[
        str | None,
        Field(
            max_length=63,
            description="Only nodes with this product: the value of the node label `nvidia.com/gpu.product` or "
            "`amd.com/gpu.product-name`.",
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
            description="Extended resource to ask for; default `nvidia.com/gpu` or `amd.com/gpu`.",
            json_schema_extra=schema(
                cel(
                    "self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",
                    "spec.accelerator.resourceName must be a qualified name such as nvidia.com/gpu: add the domain",
                )
            ),
        ),
    ] = None
    per_process: Annotated[
        int, Field(ge=1, le=64, description="Devices of each process: its ranks see exactly these.")
    ] = 1

    @property
    def resource(self) -> str | None:
        """The extended resource that a pod asks for, None on CPUs."""
        return self.resource_name or RESOURCE_NAMES.get(self.vendor)


ACCELERATOR_RULES = schema(
    cel(
        "self.vendor != 'none' || !has(self.product)",
        "spec.accelerator.product needs an accelerator: set spec.accelerator.vendor to nvidia or amd, or drop it",
        ".product",
    ),
    cel(
        "self.vendor != 'none' || !has(self.resourceName)",
        "spec.accelerator.resourceName needs an accelerator: set spec.accelerator.vendor to nvidia or amd, or remove "
        "resourceName",
        ".resourceName",
    ),
    cel(
        "self.vendor != 'none' || self.perProcess == 1",
        "spec.accelerator.perProcess needs an accelerator: set spec.accelerator.vendor to nvidia or amd, or "
        "remove perProcess",
        ".perProcess",
    ),
)


class Topology(ApiModel):
    """How the pool's nodes lie in the network."""

    key: Annotated[
        str,
        Field(
            min_length=1,
            max_length=316,
            description="Node label whose values are the domains, such as `nvidia.com/gpu.clique`.",
            json_schema_extra=schema(
                cel(
                    "self.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",
                    "spec.topology.key must be the key of a node label: copy it from `kubectl get nodes --show-labels`",
                )
            ),
        ),
    ] = "kubernetes.io/hostname"
    mode: Annotated[
        Literal["Required", "Preferred", "Spread"],
        Field(
            description="All nodes of the pool in one domain (Required), in one domain if possible (Preferred), or "
            "each in a domain of its own (Spread)."
        ),
    ] = "Preferred"


class ResourcePoolSpec(ApiModel):
    """What a user asks for."""

    nodes: Annotated[int, Field(ge=1, le=512, description="Pods of the pool, each a node of the Ray cluster.")] = 1
    processes_per_node: Annotated[
        int, Field(ge=1, le=64, description="Processes on each node, and so bundles of its placement group.")
    ]
    cluster_name: Annotated[
        str | None,
        Field(
            max_length=MAX_NAME,
            description="Name of the RayCluster; pools that name the same one share it. Default: the pool's name.",
            json_schema_extra=dns_name("spec.clusterName"),
        ),
    ] = None
    accelerator: Annotated[
        Accelerator, Field(description="The devices of each process.", json_schema_extra=ACCELERATOR_RULES)
    ] = Accelerator()
    topology: Annotated[Topology, Field(description="How the pool's nodes lie in the network.")] = Topology()
    max_colocate_count: Annotated[
        int,
        Field(ge=1, le=100, description="How many groups can share a process's devices; all see the same ones."),
    ] = 10
    reservation: Annotated[
        Literal["Eager", "None"],
        Field(
            description="Eager: each process has its bundle, for WorkerGroups and `attach_pool`. None: the nodes are "
            "ready and nothing is reserved, for programs that make placement groups of their own."
        ),
    ] = "Eager"
    image: Annotated[
        str | None,
        Field(
            max_length=512,
            description="Any image with Ray 2.52 or later on Python 3.10 or later; default: the operator's.",
            json_schema_extra=schema(
                cel(
                    "self.matches('^[^\\\\s]+$')",
                    "spec.image must be an image reference without spaces, or be left out for the default",
                )
            ),
        ),
    ] = None
    image_pull_secrets: Annotated[
        tuple[NameRef, ...], Field(max_length=16, description="Secrets for the image's registry.")
    ] = ()
    env: Annotated[EnvVars, Field(description="Environment of head, drivers and ranks.")] = ()
    env_from: Annotated[
        tuple[EnvFrom, ...], Field(max_length=32, description="Secrets and ConfigMaps whose keys are environment too.")
    ] = ()
    volumes: Annotated[Volumes, Field(description="Volumes of head, drivers and ranks, each with its mount.")] = ()
    resources: Annotated[
        Resources,
        Field(
            description="What each node asks for beside the accelerators: requests, and limits but for `cpu`. So many "
            "whole CPUs are also there for plain Ray tasks."
        ),
    ] = {}
    shared_memory: Annotated[
        Quantity | None,
        Field(
            description="Size of /dev/shm of head and nodes, such as 128Gi; it counts as the pod's memory. Default: "
            "what KubeRay gives, which is the memory limit if there is one."
        ),
    ] = None
    node_selector: Annotated[
        NodeSelector, Field(description="Labels that the Kubernetes nodes must have, beside the product's.")
    ] = {}
    tolerations: Annotated[
        Tolerations, Field(description="Taints of Kubernetes nodes that the pool's pods put up with.")
    ] = ()
    priority_class_name: Annotated[
        PriorityClassName | None, Field(description="PriorityClass of the pool's pods, and of head and agent.")
    ] = None
    agent: Annotated[
        Agent | None, Field(description="The agent's pod; of several pools on a cluster, the oldest one's.")
    ] = None
    head: Annotated[
        Head | None, Field(description="The pod of Ray's head; of several pools on a cluster, the oldest one's.")
    ] = None
    pod_template: Annotated[
        PodTemplate | None,
        Field(description="Merged into the pods of the pool's nodes. Changes reach only pods made afterwards."),
    ] = None
    progress_deadline_seconds: Annotated[
        int,
        Field(ge=5, le=604800, description="After this many seconds without being ready, Ready says so; it goes on."),
    ] = 600


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
    *(
        immutable(field, _RECREATE)
        for field in (
            "nodes",
            "processesPerNode",
            "clusterName",
            "accelerator",
            "topology",
            "maxColocateCount",
            "reservation",
            "image",
            "imagePullSecrets",
            "env",
            "envFrom",
            "volumes",
            "resources",
            "sharedMemory",
            "nodeSelector",
            "tolerations",
            "priorityClassName",
            "head",
        )
    ),
)


class ResourcePoolStatus(ApiModel):
    """What is true: conditions by the operator, the reservation by the agent."""

    conditions: Conditions = ()
    observed_generation: Annotated[
        int | None, Field(description="The generation of the spec that the operator has seen.")
    ] = None
    deadline: Annotated[
        datetime | None, Field(description="By when the pool is to be ready; absent when it is, or cannot be.")
    ] = None
    cluster_name: Annotated[str | None, Field(description="Name of the RayCluster that holds the pool.")] = None
    nodes: Annotated[int | None, Field(description="Nodes that the pool is to have.")] = None
    ready_nodes: Annotated[int | None, Field(description="Nodes whose bundles are reserved now.")] = None
    ray_version: Annotated[
        str | None, Field(description="Version of Ray in the nodes' image, as it was found there.")
    ] = None
    reservation: Annotated[PoolReport | None, Field(description="What the agent sees of the pool in Ray.")] = None


class ResourcePool(ApiObject):
    """Processes reserved on nodes."""

    spec: Annotated[ResourcePoolSpec, Field(description="What a user asks for.", json_schema_extra=SPEC_RULES)]
    status: Annotated[ResourcePoolStatus, Field(description="What is true.")] = ResourcePoolStatus()

    @property
    def cluster(self) -> str:
        """Name of the RayCluster that holds the pool."""
        return self.spec.cluster_name or self.name

    @property
    def is_reserved(self) -> bool:
        """Whether each process has its bundle."""
        return self.spec.reservation == "Eager"

    @property
    def world_size(self) -> int:
        """How many processes, and so bundles, the pool has."""
        return self.spec.nodes * self.spec.processes_per_node


OBJECT_RULES = schema(metadata_name("ResourcePool"))
