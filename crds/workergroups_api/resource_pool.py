"""ResourcePool: processes reserved on accelerator nodes, verl's resource pool as a Kubernetes object."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from workergroups_api.conditions import Conditions
from workergroups_api.model import ApiModel, ApiObject, cel, immutable, schema
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


class Toleration(ApiModel):
    """As `corev1.Toleration`."""

    key: Annotated[str | None, Field(max_length=316, description="The taint's key; absent with Exists: any.")] = None
    operator: Annotated[Literal["Exists", "Equal"], Field(description="Whether the taint's value matters.")] = "Equal"
    value: Annotated[str | None, Field(max_length=63, description="The taint's value, with Equal.")] = None
    effect: Annotated[
        Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None,
        Field(description="The taint's effect; absent: any."),
    ] = None
    toleration_seconds: Annotated[
        int | None, Field(description="How long a NoExecute taint is tolerated; absent: for ever.")
    ] = None


TOLERATION_RULES = schema(
    cel(
        "self.operator != 'Exists' || !has(self.value)",
        "spec.tolerations: operator Exists takes no value: remove value, or use operator Equal",
        ".value",
    ),
    cel(
        "has(self.key) || self.operator == 'Exists'",
        "spec.tolerations: operator Equal needs a key: add key, or use operator Exists",
        ".operator",
    ),
    cel(
        "!has(self.tolerationSeconds) || (has(self.effect) && self.effect == 'NoExecute')",
        "spec.tolerations: tolerationSeconds works with effect NoExecute only: set it, or remove tolerationSeconds",
        ".tolerationSeconds",
    ),
)


Labels = dict[str, str]

# What a strategic merge goes by. The rest of a pod is the API server's to judge, when the operator asks it.
_NAMED = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string", "description": "What the merge goes by."}},
        "x-kubernetes-preserve-unknown-fields": True,
    },
}
_POD_SPEC = schema(
    x_kubernetes_preserve_unknown_fields=True,
    properties={
        "containers": {"description": "Ray's container is `ray-worker`."} | _NAMED,
        "initContainers": {"description": "Containers that run before."} | _NAMED,
        "volumes": {"description": "Volumes for `volumeMounts`."} | _NAMED,
        "imagePullSecrets": {"description": "Secrets for the image's registry."} | _NAMED,
    },
)


class PodMetadata(ApiModel):
    """Labels and annotations of pods."""

    labels: Annotated[Labels, Field(description="Beside those that WorkerGroups and KubeRay set.")] = {}
    annotations: Annotated[Labels, Field(description="Beside those that WorkerGroups and KubeRay set.")] = {}


class PodTemplate(ApiModel):
    """What to merge into the pods of the pool's nodes, as a strategic merge patch does."""

    metadata: Annotated[PodMetadata | None, Field(description="Labels and annotations.")] = None
    spec: Annotated[
        dict[str, Any] | None,
        Field(description="As `corev1.PodSpec`; the container is `ray-worker`.", json_schema_extra=_POD_SPEC),
    ] = None


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
    image: Annotated[
        str | None,
        Field(
            max_length=512,
            description="Image with Ray and the workergroups package; default: the operator's.",
            json_schema_extra=schema(
                cel(
                    "self.matches('^[^\\\\s]+$')",
                    "spec.image must be an image reference without spaces, or be left out for the default",
                )
            ),
        ),
    ] = None
    ray_version: Annotated[
        str | None,
        Field(
            max_length=32,
            description="Version of Ray in the image; default: the operator's.",
            json_schema_extra=schema(
                cel(
                    "self.matches('^[0-9]{1,4}[.][0-9]{1,4}[.][0-9]{1,4}$') && (int(self.split('.')[0]) > 2 || "
                    "(int(self.split('.')[0]) == 2 && int(self.split('.')[1]) >= 52))",
                    "spec.rayVersion must be MAJOR.MINOR.PATCH and at least 2.52.0, the first with token "
                    "authentication: use a newer Ray",
                )
            ),
        ),
    ] = None
    node_selector: Annotated[
        dict[str, Annotated[str, Field(max_length=63)]],
        Field(max_length=32, description="Labels that the Kubernetes nodes must have, beside the product's."),
    ] = {}
    tolerations: Annotated[
        tuple[Annotated[Toleration, Field(json_schema_extra=TOLERATION_RULES)], ...],
        Field(max_length=32, description="Taints of Kubernetes nodes that the pool's pods put up with."),
    ] = ()
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
        "!has(self.image) || has(self.rayVersion)",
        "spec.rayVersion is required with spec.image: set it to the version of Ray inside the image",
        ".image",
    ),
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
            "image",
            "rayVersion",
            "nodeSelector",
            "tolerations",
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
    def world_size(self) -> int:
        """How many processes, and so bundles, the pool has."""
        return self.spec.nodes * self.spec.processes_per_node


OBJECT_RULES = schema(metadata_name("ResourcePool"))
