"""What Ray knows each node of a pool by, besides its devices: custom resources and labels."""

from typing import Annotated

from pydantic import Field

from workergroups_api.model import ApiModel, cel, schema

# Ray counts these itself, or has options for them. KubeRay and Ray read some in any case.
_RAYS_OWN = "cpu|gpu|npu|tpu|hpu|rbln|neuron_cores|memory|object_store_memory|bundle"
# Ray derives names of a placement group's resources with this.
_OF_PLACEMENT_GROUPS = "_group_"
_DOMAIN = "[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_PART = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"


class RayNode(ApiModel):
    """What Ray knows each node of a pool by, besides its devices."""

    resources: Annotated[
        dict[str, Annotated[int, Field(ge=1, le=1_000_000)]],
        Field(
            max_length=32,
            description="Custom resources that each node has in Ray, such as `teacher: 2`. Ray counts them for tasks, "
            "actors and placement groups that ask for them; the bundles that the pool reserves have none. Ray itself "
            "counts CPUs, devices and memory.",
            json_schema_extra=schema(
                cel(
                    "self.all(k, size(k) <= 63 && k.matches('^[A-Za-z_][A-Za-z0-9_.-]*$'))",
                    "spec.ray.resources must have names of at most 63 letters, digits, '_', '-' and '.', beginning "
                    "with a letter or '_': rename the resource",
                ),
                cel(
                    f"self.all(k, !k.matches('^(?i:{_RAYS_OWN})$') && !k.contains('{_OF_PLACEMENT_GROUPS}'))",
                    "spec.ray.resources cannot set what Ray counts itself: for CPUs, set spec.spareCpus; for devices, "
                    "set spec.accelerator; for memory, set spec.resources; or rename the resource",
                ),
            ),
        ),
    ] = {}
    labels: Annotated[
        dict[str, Annotated[str, Field(min_length=1, max_length=63)]],
        Field(
            max_length=32,
            description="Labels that each node has in Ray, such as `zone: a`, for the label selectors of tasks and "
            "actors. KubeRay gives them to the nodes' pods too.",
            json_schema_extra=schema(
                cel(
                    f"self.all(k, size(k) <= 253 && k.matches('^({_DOMAIN}/)?{_PART}$') "
                    f"&& self[k].matches('^{_PART}$'))",
                    "spec.ray.labels must hold keys and values of Kubernetes labels, such as `zone: a` or "
                    "`example.com/rack: r7`: correct the key or the value",
                ),
                cel(
                    "self.all(k, !k.matches('(^|[.-])(kubernetes[.]io|k8s[.]io|ray[.]io|workergroups[.]dev)/'))",
                    "spec.ray.labels cannot set labels of Kubernetes, Ray or WorkerGroups: use a prefix of your own",
                ),
            ),
        ),
    ] = {}
