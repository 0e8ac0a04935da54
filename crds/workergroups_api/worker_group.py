"""WorkerGroup: Ray actors of one class, one per rank, on the bundles of one or more pools."""

from typing import Annotated, Any

from pydantic import Field

from workergroups_api.conditions import Conditions
from workergroups_api.model import ANYTHING, ApiModel, ApiObject, cel, immutable, list_map, schema
from workergroups_api.report import GroupReport
from workergroups_api.resource_pool import MAX_NAME, dns_name, metadata_name

# Set for each rank by the library; a user's value would break the rendezvous or show a rank devices of its neighbour.
PROTECTED_ENV = (
    "WORLD_SIZE",
    "RANK",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "WG_PREFIX",
    "WG_BACKEND",
    "RAY_LOCAL_RANK",
    "RAY_LOCAL_WORLD_SIZE",
    "CUDA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "ASCEND_RT_VISIBLE_DEVICES",
)
_RECREATE = "delete the group and create it again"


class BundleRange(ApiModel):
    """Consecutive bundles of a pool, counted over its nodes in order (verl's split)."""

    start: Annotated[int, Field(ge=0, le=32767)] = 0
    count: Annotated[int, Field(ge=1, le=32768)]


class PoolRef(ApiModel):
    """A pool in the group's namespace, whole or in part."""

    name: Annotated[str, Field(min_length=1, max_length=MAX_NAME, json_schema_extra=dns_name("spec.pools[].name"))]
    bundles: Annotated[BundleRange | None, Field(description="Default: all bundles of the pool.")] = None


class WorkerClass(ApiModel):
    """The class of the ranks and its constructor's arguments."""

    class_: Annotated[
        str,
        Field(
            alias="class",
            max_length=255,
            description="Import path, `package.module.Class`.",
            json_schema_extra=schema(
                cel(
                    "self.matches('^[A-Za-z_][A-Za-z0-9_]*([.][A-Za-z_][A-Za-z0-9_]*)+$')",
                    "spec.worker.class must be an import path: write package.module.Class",
                )
            ),
        ),
    ]
    args: Annotated[
        tuple[Annotated[Any, Field(json_schema_extra=ANYTHING)], ...],
        Field(max_length=64, description="Positional arguments, any JSON."),
    ] = ()
    kwargs_: Annotated[
        dict[str, Any] | None,
        Field(alias="kwargs", description="Keyword arguments, any JSON.", json_schema_extra=ANYTHING),
    ] = None


class ConfigMapRef(ApiModel):
    """A ConfigMap in the group's namespace whose keys are Python files."""

    name: Annotated[
        str,
        Field(
            max_length=253,
            json_schema_extra=schema(
                cel(
                    "self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",
                    "spec.code.configMap.name must be the name of a ConfigMap: lower-case letters, digits, '-' and '.'",
                )
            ),
        ),
    ]


class Code(ApiModel):
    """Where the class comes from when it is not in the image."""

    config_map: ConfigMapRef


class EnvVar(ApiModel):
    """An environment variable of every rank."""

    name: Annotated[
        str,
        Field(
            max_length=255,
            json_schema_extra=schema(
                cel(
                    "self.matches('^[A-Za-z_][A-Za-z0-9_]*$')",
                    "spec.env[].name must be letters, digits and '_', not beginning with a digit: rename it",
                ),
                cel(
                    f"!(self in {list(PROTECTED_ENV)!r})",
                    "spec.env[].name is set by WorkerGroups for each rank: remove it; "
                    f"protected are {', '.join(PROTECTED_ENV)}",
                ),
            ),
        ),
    ]
    value: Annotated[str, Field(max_length=32768)] = ""


class WorkerGroupSpec(ApiModel):
    """What a user asks for."""

    pools: Annotated[
        tuple[PoolRef, ...],
        Field(
            min_length=1,
            max_length=16,
            description="Pools that the group runs on; ranks are numbered through them in this order (verl's merge).",
            json_schema_extra=dict(list_map("name")),
        ),
    ]
    worker: WorkerClass
    code: Annotated[Code | None, Field(description="Default: the class is in the image.")] = None
    env: Annotated[tuple[EnvVar, ...], Field(max_length=128, json_schema_extra=dict(list_map("name")))] = ()
    start_deadline_seconds: Annotated[
        int, Field(ge=5, le=604800, description="After this many seconds without all ranks, Ready says so.")
    ] = 600


SPEC_RULES = schema(*(immutable(field, _RECREATE) for field in ("pools", "code", "env", "worker")))


class WorkerGroupStatus(ApiModel):
    """What is true: conditions by the operator, the ranks by the agent."""

    conditions: Conditions = ()
    observed_generation: int | None = None
    world_size: Annotated[int | None, Field(description="How many ranks the group has.")] = None
    ranks: GroupReport | None = None


class WorkerGroup(ApiObject):
    """Registered Ray worker actors, one per rank."""

    spec: Annotated[WorkerGroupSpec, Field(json_schema_extra=SPEC_RULES)]
    status: WorkerGroupStatus = WorkerGroupStatus()


OBJECT_RULES = schema(metadata_name("WorkerGroup"))
