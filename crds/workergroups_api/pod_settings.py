"""What a pool sets in its pods: environment, volumes, resources, and placement."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema

from workergroups_api.model import ANYTHING, ApiModel, cel, list_map, schema

# The library sets for each rank which devices it sees, and Ray for the pods. Ray fails if only ROCR's variable is set.
VISIBLE_DEVICES_ENV = (
    "CUDA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "ASCEND_RT_VISIBLE_DEVICES",
)
# KubeRay sets these, or the operator for KubeRay. With other values, the pods could not find or enter their cluster.
_RAY_ENV = ("RAY_ADDRESS", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_CLOUD_INSTANCE_ID", "RAY_NODE_TYPE_NAME")
PROTECTED_POD_ENV = (*VISIBLE_DEVICES_ENV, *_RAY_ENV)

ENV_NAME_RULE = cel(
    "self.matches('^[A-Za-z_][A-Za-z0-9_]*$')",
    "spec.env[].name must be letters, digits and '_', not beginning with a digit: rename it",
)
# An amount as in Kubernetes: a number or a string.
Quantity = Annotated[
    str,
    BeforeValidator(str),
    WithJsonSchema(
        {
            "x-kubernetes-int-or-string": True,
            "pattern": "^[0-9]+([.][0-9]+)?(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?$",
            "description": "An amount, such as 28, 500m or 200Gi.",
        }
    ),
]


class PodEnvVar(ApiModel):
    """As `corev1.EnvVar`."""

    name: Annotated[
        str,
        Field(
            max_length=255,
            description="Name of the variable.",
            json_schema_extra=schema(
                ENV_NAME_RULE,
                cel(
                    f"!(self in {list(PROTECTED_POD_ENV)!r})",
                    "spec.env[].name is set by WorkerGroups, KubeRay or Ray: remove it; "
                    f"protected are {', '.join(PROTECTED_POD_ENV)}",
                ),
            ),
        ),
    ]
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

    @property
    def source(self) -> dict[str, Any]:
        """The volume without its mount."""
        return dict(self.model_extra or {})

    @property
    def mount(self) -> dict[str, Any]:
        """The mount without the volume."""
        return {key: value for key, value in self.to_json().items() if key not in self.source}


class Toleration(ApiModel):
    """As `corev1.Toleration`."""

    key: Annotated[
        str | None, Field(max_length=316, description="Key of the taint. If absent, with Exists: any key.")
    ] = None
    operator: Annotated[
        Literal["Exists", "Equal"], Field(description="Equal: the taint's value must equal `value`. Exists: any value.")
    ] = "Equal"
    value: Annotated[str | None, Field(max_length=63, description="Value of the taint, with Equal.")] = None
    effect: Annotated[
        Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None,
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


Labels = dict[str, str]

# A strategic merge needs the names. The API server validates the rest of the pod, in a dry run by the operator.
_NAMED = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string", "description": "Name by which entries are merged."}},
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
        Labels, Field(description="Annotations, in addition to those that WorkerGroups and KubeRay set.")
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
Resources = Annotated[dict[str, Quantity], Field(max_length=32)]


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
        Resources, Field(description="What each of the agent's two containers requests. The amounts are also limits.")
    ] = {}


class Head(Placement):
    """Settings of the pod of Ray's head, in which drivers run."""

    resources: Annotated[
        Resources,
        Field(description="What the head's container requests. The amounts are also limits, except that of `cpu`."),
    ] = {}
    pod_template: Annotated[
        PodTemplate | None, Field(description="Merged into the head's pod, whose container is `ray-head`.")
    ] = None


EnvVars = Annotated[tuple[PodEnvVar, ...], Field(max_length=256, json_schema_extra=dict(list_map("name")))]
Volumes = Annotated[
    tuple[Annotated[Volume, Field(json_schema_extra=ANYTHING)], ...],
    Field(max_length=64, json_schema_extra=dict(list_map("mountPath"))),
]
