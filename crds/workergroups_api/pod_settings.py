"""What a pool says of its pods: environment, volumes, resources, and where they may run."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema

from workergroups_api.model import ANYTHING, ApiModel, cel, list_map, schema

# Which devices a process sees is the library's to set for each rank, and in the pods Ray's: it fails on ROCR's alone.
VISIBLE_DEVICES_ENV = (
    "CUDA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "ASCEND_RT_VISIBLE_DEVICES",
)
# Set by KubeRay, or by the operator for KubeRay: with other values the pods would not find or open their cluster.
_RAY_ENV = ("RAY_ADDRESS", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_CLOUD_INSTANCE_ID", "RAY_NODE_TYPE_NAME")
PROTECTED_POD_ENV = (*VISIBLE_DEVICES_ENV, *_RAY_ENV)

ENV_NAME_RULE = cel(
    "self.matches('^[A-Za-z_][A-Za-z0-9_]*$')",
    "spec.env[].name must be letters, digits and '_', not beginning with a digit: rename it",
)
# An amount as Kubernetes writes it: a number, or a text.
Quantity = Annotated[
    str,
    BeforeValidator(str),
    WithJsonSchema(
        {
            "x-kubernetes-int-or-string": True,
            "pattern": "^[0-9]+([.][0-9]+)?(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?$",
            "description": "Such as 28, 500m or 200Gi.",
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
    value: Annotated[str | None, Field(max_length=32768, description="Its value.")] = None
    value_from: Annotated[
        dict[str, Any] | None,
        Field(
            description="As `corev1.EnvVarSource`: `secretKeyRef`, `configMapKeyRef`, `fieldRef`, `resourceFieldRef`.",
            json_schema_extra=ANYTHING,
        ),
    ] = None


class NameRef(ApiModel):
    """An object in the pool's namespace."""

    name: Annotated[str, Field(min_length=1, max_length=253, description="Its name.")]


class OptionalRef(NameRef):
    """An object in the pool's namespace that pods may be able to do without."""

    optional: Annotated[bool, Field(description="Whether pods start without it.")] = False


class EnvFrom(ApiModel):
    """As `corev1.EnvFromSource`."""

    prefix: Annotated[str | None, Field(max_length=255, description="Put before each name.")] = None
    config_map_ref: Annotated[OptionalRef | None, Field(description="A ConfigMap whose keys are the names.")] = None
    secret_ref: Annotated[OptionalRef | None, Field(description="A Secret whose keys are the names.")] = None


class Volume(ApiModel):
    """A `corev1.VolumeSource`, and where it is mounted."""

    model_config = ConfigDict(extra="allow")

    mount_path: Annotated[
        str,
        Field(
            max_length=1024,
            description="Where the containers see it.",
            json_schema_extra=schema(
                cel(
                    "self.matches('^/[^:]+$')",
                    "spec.volumes[].mountPath must be an absolute path without ':': begin it with '/'",
                )
            ),
        ),
    ]
    sub_path: Annotated[str | None, Field(max_length=1024, description="The part of the volume that is mounted.")] = (
        None
    )
    read_only: Annotated[bool | None, Field(description="Whether the containers can only read it.")] = None

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
        "containers": {"description": "Ray's container is `ray-worker`, the head's `ray-head`."} | _NAMED,
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
    """What to merge into pods, as a strategic merge patch does."""

    metadata: Annotated[PodMetadata | None, Field(description="Labels and annotations.")] = None
    spec: Annotated[
        dict[str, Any] | None,
        Field(
            description="As `corev1.PodSpec`; the container is `ray-worker`, the head's `ray-head`.",
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
    """Where a pod runs that is not one of the pool's nodes. What is absent is as for the nodes."""

    node_selector: Annotated[
        NodeSelector | None,
        Field(description="Labels of the Kubernetes nodes that it may run on; default: `spec.nodeSelector`."),
    ] = None
    tolerations: Annotated[
        Tolerations | None,
        Field(
            description="Taints of Kubernetes nodes that it tolerates; default: those that the pool's nodes tolerate."
        ),
    ] = None
    priority_class_name: Annotated[
        PriorityClassName | None,
        Field(description="Its PriorityClass, empty for none; default: `spec.priorityClassName`."),
    ] = None
    image_pull_secrets: Annotated[
        PullSecrets | None, Field(description="Secrets for its images' registries; default: the nodes'.")
    ] = None


class Agent(Placement):
    """The pod of the agent, which connects Ray and Kubernetes."""

    resources: Annotated[
        Resources, Field(description="What each of its two containers asks for: requests, and the same as limits.")
    ] = {}


class Head(Placement):
    """The pod of Ray's head, in which drivers run."""

    resources: Annotated[Resources, Field(description="What the head asks for, as `spec.resources` of the nodes.")] = {}
    pod_template: Annotated[PodTemplate | None, Field(description="Merged into the head's pod.")] = None


EnvVars = Annotated[tuple[PodEnvVar, ...], Field(max_length=256, json_schema_extra=dict(list_map("name")))]
Volumes = Annotated[
    tuple[Annotated[Volume, Field(json_schema_extra=ANYTHING)], ...],
    Field(max_length=64, json_schema_extra=dict(list_map("mountPath"))),
]
