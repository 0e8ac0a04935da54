"""ResourcePool: processes reserved on accelerator nodes, verl's `process_on_nodes` as a Kubernetes object."""

from typing import Annotated, Any, Literal

from pydantic import Field

from workergroups_api.conditions import Conditions
from workergroups_api.model import ANYTHING, ApiModel, ApiObject, cel, immutable, schema
from workergroups_api.report import PoolReport

DNS_1035 = "^[a-z]([-a-z0-9]*[a-z0-9])?$"
# Leaves room for the suffixes of the objects made from it; KubeRay allows 53.
MAX_NAME = 40

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
    count_per_process: Annotated[int, Field(ge=1, le=64, description="Devices that each process gets to itself.")] = 1


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
        "self.vendor != 'none' || self.countPerProcess == 1",
        "spec.accelerator.countPerProcess needs an accelerator: set spec.accelerator.vendor to nvidia or amd, or "
        "remove countPerProcess",
        ".countPerProcess",
    ),
)


class Toleration(ApiModel):
    """As `corev1.Toleration`."""

    key: Annotated[str | None, Field(max_length=316)] = None
    operator: Literal["Exists", "Equal"] = "Equal"
    value: Annotated[str | None, Field(max_length=63)] = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    toleration_seconds: int | None = None


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


class PodTemplate(ApiModel):
    """What to merge into the pods of the pool's nodes, as a strategic merge patch does."""

    metadata: Annotated[dict[str, Any] | None, Field(json_schema_extra=ANYTHING)] = None
    spec: Annotated[dict[str, Any] | None, Field(json_schema_extra=ANYTHING)] = None


class ResourcePoolSpec(ApiModel):
    """What a user asks for."""

    processes_per_node: Annotated[
        tuple[Annotated[int, Field(ge=1, le=64)], ...],
        Field(
            min_length=1,
            max_length=512,
            description="verl's `process_on_nodes`: one entry per node, one bundle per process.",
        ),
    ]
    accelerator: Annotated[Accelerator, Field(json_schema_extra=ACCELERATOR_RULES)] = Accelerator()
    node_selector: Annotated[
        dict[str, Annotated[str, Field(max_length=63)]],
        Field(max_length=32, description="Labels that the Kubernetes nodes must have, beside the product's."),
    ] = {}
    tolerations: Annotated[
        tuple[Annotated[Toleration, Field(json_schema_extra=TOLERATION_RULES)], ...], Field(max_length=32)
    ] = ()
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
                    "self.matches('^[0-9]+[.][0-9]+[.][0-9]+$') && (int(self.split('.')[0]) > 2 || "
                    "(int(self.split('.')[0]) == 2 && int(self.split('.')[1]) >= 52))",
                    "spec.rayVersion must be MAJOR.MINOR.PATCH and at least 2.52.0, the first with token "
                    "authentication: use a newer Ray",
                )
            ),
        ),
    ] = None
    pod_template: Annotated[
        PodTemplate | None,
        Field(description="Merged into the pods of the pool's nodes. Changes reach only pods made afterwards."),
    ] = None
    placement_strategy: Annotated[
        Literal["PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD"],
        Field(
            description="How the pool's Ray nodes lie on Kubernetes nodes: together if possible, apart if possible, or "
            "strictly so. The bundles of one entry of processesPerNode are always on one node."
        ),
    ] = "PACK"
    reservation_deadline_seconds: Annotated[
        int,
        Field(ge=5, le=604800, description="After this many seconds without a reservation, Ready says so."),
    ] = 600
    max_colocate_count: Annotated[
        int,
        Field(
            ge=1,
            le=100,
            description="How many groups can share a process's devices; each gets an equal part.",
        ),
    ] = 10
    cluster: Annotated[
        str | None,
        Field(
            max_length=MAX_NAME,
            description="Name of the RayCluster; pools that name the same one share it. Default: the pool's name.",
            json_schema_extra=dns_name("spec.cluster"),
        ),
    ] = None


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
            "processesPerNode",
            "accelerator",
            "image",
            "rayVersion",
            "placementStrategy",
            "maxColocateCount",
            "cluster",
            "nodeSelector",
            "tolerations",
        )
    ),
)


class ResourcePoolStatus(ApiModel):
    """What is true: conditions by the operator, the reservation by the agent."""

    conditions: Conditions = ()
    observed_generation: int | None = None
    cluster: Annotated[str | None, Field(description="Name of the RayCluster that holds the pool.")] = None
    reservation: PoolReport | None = None


class ResourcePool(ApiObject):
    """Processes reserved on nodes."""

    spec: Annotated[ResourcePoolSpec, Field(json_schema_extra=SPEC_RULES)]
    status: ResourcePoolStatus = ResourcePoolStatus()

    @property
    def cluster(self) -> str:
        """Name of the RayCluster that holds the pool."""
        return self.spec.cluster or self.name

    @property
    def world_size(self) -> int:
        """How many processes, and so bundles, the pool has."""
        return sum(self.spec.processes_per_node)


OBJECT_RULES = schema(metadata_name("ResourcePool"))
