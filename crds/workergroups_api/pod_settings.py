"""What a pool sets in its pods: environment, volumes, resources, and placement."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from workergroups_api.model import ANYTHING, ApiModel, cel, list_map, schema
from workergroups_api.vocabulary import VISIBLE_DEVICES_ENV, MountedIn, TaintEffect, TolerationOperator

# KubeRay sets these, or the operator for KubeRay. With other values, the pods could not find or enter their cluster.
_RAY_ENV = ("RAY_ADDRESS", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_CLOUD_INSTANCE_ID", "RAY_NODE_TYPE_NAME")
# The cluster's agent would have no certificate: see the field `tls` of pools.
_TLS_ENV = ("RAY_USE_TLS", "RAY_TLS_CA_CERT", "RAY_TLS_SERVER_CERT", "RAY_TLS_SERVER_KEY")
PROTECTED_POD_ENV = (*VISIBLE_DEVICES_ENV, *_RAY_ENV, *_TLS_ENV)

MAX_QUANTITY = 64
# An amount as in Kubernetes: a number or a string.
Quantity = Annotated[
    str,
    BeforeValidator(str),
    WithJsonSchema(
        {
            "x-kubernetes-int-or-string": True,
            "pattern": "^[0-9]+([.][0-9]+)?(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?$",
            "maxLength": MAX_QUANTITY,
            "description": "An amount, such as 28, 500m or 200Gi.",
        }
    ),
]


def env_name(protected: Sequence[str], set_by: str, *more: dict[str, str]) -> Any:
    """Return the field for the name of a variable, which must not be one of those that `set_by` sets.

    `more` are further rules.
    """
    return Field(
        max_length=255,
        description="Name of the variable.",
        json_schema_extra=schema(
            cel(
                "self.matches('^[A-Za-z_][A-Za-z0-9_]*$')",
                "spec.env[].name must be letters, digits and '_', not beginning with a digit: rename it",
            ),
            cel(
                f"!(self in {list(protected)!r})",
                f"spec.env[].name is set by {set_by}: remove it; protected are {', '.join(protected)}",
            ),
            *more,
        ),
    )


class PodEnvVar(ApiModel):
    """As `corev1.EnvVar`."""

    name: Annotated[str, env_name(PROTECTED_POD_ENV, "WorkerGroups, KubeRay or Ray")]
    value: Annotated[str | None, Field(max_length=32768, description="Value of the variable.")] = None
    value_from: Annotated[
        dict[str, Any] | None,
        Field(
            description="Source of the value, as in a container: `secretKeyRef`, `configMapKeyRef`, `fieldRef` or "
            "`resourceFieldRef`.",
            json_schema_extra=ANYTHING,
        ),
    ] = None


class NameRef(ApiModel):
    """An object in the same namespace."""

    name: Annotated[str, Field(min_length=1, max_length=253, description="Name of the object.")]


class OptionalRef(NameRef):
    """An object in the same namespace that may be missing."""

    optional: Annotated[
        bool, Field(description="Whether pods, or a group's ranks, start if the object does not exist.")
    ] = False


class EnvFrom(ApiModel):
    """As `corev1.EnvFromSource`."""

    prefix: Annotated[str | None, Field(max_length=255, description="Added in front of the name of each variable.")] = (
        None
    )
    config_map_ref: Annotated[OptionalRef | None, Field(description="A ConfigMap; each key becomes a variable.")] = None
    secret_ref: Annotated[OptionalRef | None, Field(description="A Secret; each key becomes a variable.")] = None


class Volume(ApiModel):
    """A volume as in a pod (`corev1.VolumeSource`), and its mount."""

    model_config = ConfigDict(extra="allow")

    mount_path: Annotated[
        str,
        Field(
            max_length=1024,
            description="Path at which the volume is mounted in the containers.",
            json_schema_extra=schema(
                cel(
                    "self.matches('^/[^:]+$')",
                    "spec.volumes[].mountPath must be an absolute path without ':': begin it with '/'",
                )
            ),
        ),
    ]
    sub_path: Annotated[
        str | None, Field(max_length=1024, description="Path within the volume. Default: its root.")
    ] = None
    read_only: Annotated[bool | None, Field(description="Whether the volume is mounted read-only.")] = None
    pods: Annotated[
        MountedIn,
        Field(
            description="Which pods mount the volume. All: head and nodes, and so drivers and ranks. Nodes: the nodes "
            "only. Head: only the head, in which drivers run."
        ),
    ] = MountedIn.ALL

    @property
    def source(self) -> dict[str, Any]:
        """The volume without its mount."""
        return dict(self.model_extra or {})

    @property
    def mount(self) -> dict[str, Any]:
        """The mount without the volume."""
        return {key: value for key, value in self.to_json().items() if key not in self.source and key != "pods"}

    @property
    def is_in_head(self) -> bool:
        """Whether the head mounts the volume."""
        return self.pods is not MountedIn.NODES

    @property
    def is_in_nodes(self) -> bool:
        """Whether the nodes mount the volume."""
        return self.pods is not MountedIn.HEAD


class Setup(ApiModel):
    """A script that prepares a pod before Ray starts in it."""

    script: Annotated[
        str,
        Field(
            min_length=1,
            max_length=16384,
            description="Bash script that runs in an init container with the image, the environment, the volumes, the "
            "resources and the user of Ray's container. It stops at the first command that fails. Only what it writes "
            "to volumes outlives it. If it fails, kubelet runs it again, so it must be idempotent.",
            json_schema_extra=schema(
                cel(
                    "!self.contains('\\u0000')",
                    "spec.setup.script contains a NUL character, which no process can be given: remove it",
                )
            ),
        ),
    ]
    timeout_seconds: Annotated[
        int, Field(ge=1, le=86400, description="A script that runs longer is ended, and has failed.")
    ] = 1800
    pods: Annotated[
        MountedIn,
        Field(
            description="Which pods run the script. All: head and nodes. Nodes: the nodes only. Head: only the head, "
            "in which drivers run. The head runs the script of the cluster's oldest pool."
        ),
    ] = MountedIn.ALL


class Toleration(ApiModel):
    """As `corev1.Toleration`."""

    key: Annotated[
        str | None, Field(max_length=316, description="Key of the taint. If absent, with Exists: any key.")
    ] = None
    operator: Annotated[
        TolerationOperator, Field(description="Equal: the taint's value must equal `value`. Exists: any value.")
    ] = TolerationOperator.EQUAL
    value: Annotated[str | None, Field(max_length=63, description="Value of the taint, with Equal.")] = None
    effect: Annotated[
        TaintEffect | None,
        Field(description="Effect of the taint. If absent: any effect."),
    ] = None
    toleration_seconds: Annotated[
        int | None, Field(description="How long a NoExecute taint is tolerated. If absent: forever.")
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


# Kubernetes' limits of a label's value, and of all annotations of an object together.
Labels = Annotated[dict[str, Annotated[str, Field(max_length=63)]], Field(max_length=256)]
Annotations = Annotated[dict[str, Annotated[str, Field(max_length=262_144)]], Field(max_length=256)]

# A strategic merge needs the names. The API server validates the rest of the pod, in a dry run by the operator.
_NAMED = {
    "type": "array",
    "maxItems": 256,
    "items": {
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"type": "string", "maxLength": 253, "description": "Name by which entries are merged."}
        },
        "x-kubernetes-preserve-unknown-fields": True,
    },
}
_POD_SPEC = schema(
    x_kubernetes_preserve_unknown_fields=True,
    properties={
        "containers": {"description": "Containers. Ray runs in `ray-worker`, and in the head in `ray-head`."} | _NAMED,
        "initContainers": {"description": "Containers that run before the others."} | _NAMED,
        "volumes": {"description": "Volumes that the containers can mount."} | _NAMED,
        "imagePullSecrets": {"description": "Secrets with credentials for the image's registry."} | _NAMED,
    },
)


class PodMetadata(ApiModel):
    """Labels and annotations of pods."""

    labels: Annotated[Labels, Field(description="Labels, in addition to those that WorkerGroups and KubeRay set.")] = {}
    annotations: Annotated[
        Annotations, Field(description="Annotations, in addition to those that WorkerGroups and KubeRay set.")
    ] = {}


class PodTemplate(ApiModel):
    """What is merged into pods, as by a strategic merge patch."""

    metadata: Annotated[PodMetadata | None, Field(description="Labels and annotations of the pods.")] = None
    spec: Annotated[
        dict[str, Any] | None,
        Field(
            description="Any part of a pod's spec (`corev1.PodSpec`). Ray's container is `ray-worker`, and in the head "
            "`ray-head`.",
            json_schema_extra=_POD_SPEC,
        ),
    ] = None


NodeSelector = Annotated[dict[str, Annotated[str, Field(max_length=63)]], Field(max_length=32)]
Tolerations = Annotated[
    tuple[Annotated[Toleration, Field(json_schema_extra=TOLERATION_RULES)], ...], Field(max_length=32)
]
PriorityClassName = Annotated[
    str,
    Field(
        max_length=253,
        json_schema_extra=schema(
            cel(
                "self.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$')",
                "spec.priorityClassName, also of spec.head and spec.agent, must name a PriorityClass: choose one of "
                "`kubectl get priorityclasses`",
            )
        ),
    ),
]
PullSecrets = Annotated[tuple[NameRef, ...], Field(max_length=16)]


# The API server refuses a rule that could cost too much: it cannot know that no quantity is megabytes long.
Amounts = Annotated[dict[str, Quantity], Field(max_length=12)]
# `resources: {cpu: 28}` was valid once. The API server would drop such fields unseen, unless the schema names them.
_FLAT = ("cpu", "memory")


def _refuse_flat(json_schema: dict[str, Any]) -> None:
    refused = {
        "description": "Not here: set it in `requests` or `limits`.",
        "x-kubernetes-int-or-string": True,
        "maxLength": MAX_QUANTITY,
    }
    json_schema["properties"] |= {name: dict(refused) for name in _FLAT}


class Resources(ApiModel):
    """What a container requests, and what it may use: as `corev1.ResourceRequirements`.

    The API server keeps fields that it does not know, and the operator reports them: an amount that was dropped unseen
    would take memory or devices from a pool.
    """

    model_config = ConfigDict(json_schema_extra=_refuse_flat)

    requests: Annotated[
        Amounts,
        Field(
            description="What the scheduler reserves on a Kubernetes node, such as `cpu: 28`. Default of each "
            "resource: its limit, if there is one."
        ),
    ] = {}
    limits: Annotated[
        Amounts,
        Field(description="What the container cannot exceed. Default of each resource except `cpu`: its request."),
    ] = {}

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, value: Any) -> Any:
        if isinstance(value, Mapping) and (unknown := value.keys() - cls.model_fields.keys()):
            raise ValueError(f"{min(unknown)} is no field of resources: move it into requests or limits")
        return value

    def amount(self, name: str) -> str | None:
        """Return how much of a resource is requested, None if that is left to the default."""
        return self.requests.get(name, self.limits.get(name))


class ResourceClaim(ApiModel):
    """As `corev1.ResourceClaim` of a container."""

    name: Annotated[
        str, Field(min_length=1, max_length=253, description="Name of an entry of the pod's `resourceClaims`.")
    ]
    request: Annotated[
        str | None, Field(max_length=253, description="Name of a request in the claim. If absent: the whole claim.")
    ] = None


class ClaimingResources(Resources):
    """What a container requests, may use, and claims: as `corev1.ResourceRequirements`."""

    claims: Annotated[
        tuple[ResourceClaim, ...],
        Field(
            max_length=16,
            description="Claims of the pod that the container uses. `podTemplate.spec.resourceClaims` defines them.",
            json_schema_extra=dict(list_map("name")),
        ),
    ] = ()


def resource_rules(field: str) -> dict[str, Any]:
    """Return the schema extras of a field with resources: the API server names the field in what it refuses."""
    within = (
        "type(self.requests[k]) == string "
        "? (type(self.limits[k]) == string "
        "? quantity(self.requests[k]).compareTo(quantity(self.limits[k])) <= 0 "
        ": quantity(self.requests[k]).sub(self.limits[k]).compareTo(quantity('0')) <= 0) "
        ": (type(self.limits[k]) == string "
        "? quantity(self.limits[k]).sub(self.requests[k]).compareTo(quantity('0')) >= 0 "
        ": self.requests[k] <= self.limits[k])"
    )
    return schema(
        cel(
            " && ".join(f"!has(self.{name})" for name in _FLAT),
            f"{field} holds requests and limits: move the amounts into them, such as "
            f"`{field.rpartition('.')[2]}: {{requests: {{cpu: 28, memory: 200Gi}}}}`",
        ),
        cel(
            f"!has(self.requests) || !has(self.limits) || self.requests.all(k, !(k in self.limits) || ({within}))",
            f"{field}.requests must not exceed {field}.limits: lower the request, or raise the limit",
            ".requests",
        ),
        x_kubernetes_preserve_unknown_fields=True,
    )


class Placement(ApiModel):
    """Where the head or the agent runs. The default of each field is what the pool's nodes have."""

    node_selector: Annotated[
        NodeSelector | None,
        Field(description="Labels that the Kubernetes node of the pod must have. Default: `spec.nodeSelector`."),
    ] = None
    tolerations: Annotated[
        Tolerations | None,
        Field(description="Taints that the pod tolerates. Default: those that the pool's nodes tolerate."),
    ] = None
    priority_class_name: Annotated[
        PriorityClassName | None,
        Field(description="PriorityClass of the pod; empty for none. Default: `spec.priorityClassName`."),
    ] = None
    image_pull_secrets: Annotated[
        PullSecrets | None,
        Field(description="Secrets with credentials for the registries of the pod's images. Default: the nodes'."),
    ] = None


class Agent(Placement):
    """Settings of the agent's pod. The agent connects Ray and Kubernetes."""

    resources: Annotated[
        Resources,
        Field(
            description="What each of the agent's two containers requests, and may use. By default, the limits are 1 "
            "CPU (or one more than the request has, if that is 1 or more) and 512Mi.",
            json_schema_extra=resource_rules("spec.agent.resources"),
        ),
    ] = Resources()


class GcsStorageClaim(ApiModel):
    """A volume that outlives the head's pod."""

    claim_name: Annotated[
        str,
        Field(
            min_length=1,
            max_length=253,
            description="Name of a PersistentVolumeClaim, best with the access mode ReadWriteOncePod. Several clusters "
            "can use one: each has a directory of its own there.",
        ),
    ]


class Head(Placement):
    """Settings of the pod of Ray's head, in which drivers run."""

    resources: Annotated[
        ClaimingResources,
        Field(
            description="What the head's container requests, and may use. By default, it requests 200m CPU and 512Mi, "
            "and its limits are 8 CPUs (or one more than the request has, if that is 8 or more) and 16Gi.",
            json_schema_extra=resource_rules("spec.head.resources"),
        ),
    ] = ClaimingResources()
    spare_cpus: Annotated[
        int,
        Field(
            ge=0,
            le=1000,
            description="Number of logical CPUs that Ray counts in the head. Default: none, so tasks and actors that "
            "need CPUs run on the nodes. Drivers that are Ray jobs run in the head in any case.",
        ),
    ] = 0
    gcs_storage: Annotated[
        GcsStorageClaim | None,
        Field(
            description="Where Ray's control service (the GCS) keeps its state, so that a head that starts again finds "
            "nodes and ranks as they were. By default, it is a volume of the head's pod: ranks survive when the head's "
            "container is restarted, and end with its pod."
        ),
    ] = None
    pod_template: Annotated[
        PodTemplate | None, Field(description="Merged into the head's pod, whose container is `ray-head`.")
    ] = None


EnvVars = Annotated[tuple[PodEnvVar, ...], Field(max_length=256, json_schema_extra=dict(list_map("name")))]
Volumes = Annotated[
    tuple[Annotated[Volume, Field(json_schema_extra=ANYTHING)], ...],
    Field(max_length=64, json_schema_extra=dict(list_map("mountPath"))),
]
