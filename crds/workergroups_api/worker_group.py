"""WorkerGroup: Ray actors of one class, one per rank, on the bundles of one or more pools."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from workergroups_api.conditions import Conditions
from workergroups_api.launch import MAX_ENV_BYTES, Launch, RoleLaunch, digest
from workergroups_api.model import ANYTHING, ApiModel, ApiObject, cel, immutable, list_map, schema
from workergroups_api.names import RESTARTED_AT_ANNOTATION
from workergroups_api.pod_settings import ENV_NAME_RULE, VISIBLE_DEVICES_ENV
from workergroups_api.report import GroupReport
from workergroups_api.resource_pool import MAX_NAME, dns_name, metadata_name
from workergroups_api.retries import Retries

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
    *VISIBLE_DEVICES_ENV,
)
_RECREATE = "delete the group and create it again"
_ONE_OF_TWO = (
    "spec.worker or spec.roles must say what the ranks are, and not both: for one class set spec.worker, for several "
    "in one process spec.roles"
)


class BundleRange(ApiModel):
    """Consecutive bundles of a pool, counted over its nodes in order (verl's split)."""

    start: Annotated[int, Field(ge=0, le=32767, description="The first bundle, counted from 0.")] = 0
    count: Annotated[int, Field(ge=1, le=32768, description="How many bundles, and so ranks.")]


class PoolRef(ApiModel):
    """A pool in the group's namespace, whole or in part."""

    name: Annotated[
        str,
        Field(
            min_length=1,
            max_length=MAX_NAME,
            description="Name of the ResourcePool.",
            json_schema_extra=dns_name("spec.pools[].name"),
        ),
    ]
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
                    "spec.worker.class or spec.roles[].class must be an import path: write package.module.Class",
                )
            ),
        ),
    ]
    args: Annotated[
        tuple[Annotated[Any, Field(json_schema_extra=ANYTHING)], ...],
        Field(max_length=64, description="Positional arguments, any JSON."),
    ] = ()
    kwargs_: Annotated[
        # A null is None: without `nullable` the API server would drop the argument.
        dict[str, Annotated[Any, Field(json_schema_extra=schema(nullable=True) | ANYTHING)]],
        Field(alias="kwargs", max_length=256, description="Keyword arguments, any JSON."),
    ] = {}


class Role(WorkerClass):
    """One of several classes of which each rank has an instance, in one process (verl's colocated classes)."""

    name: Annotated[
        str,
        Field(
            max_length=63,
            description="What the group's `spawn` knows the role by.",
            json_schema_extra=schema(
                cel(
                    "self.matches('^[a-z][a-z0-9_]*$')",
                    "spec.roles[].name must be lower-case letters, digits and '_', and begin with a letter",
                )
            ),
        ),
    ]


class ConfigMapRef(ApiModel):
    """A ConfigMap in the group's namespace whose keys are Python files."""

    name: Annotated[
        str,
        Field(
            max_length=253,
            description="Name of the ConfigMap.",
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

    config_map: Annotated[ConfigMapRef, Field(description="A ConfigMap whose keys are Python files.")]


class EnvVar(ApiModel):
    """An environment variable of every rank."""

    name: Annotated[
        str,
        Field(
            max_length=255,
            description="Name of the variable.",
            json_schema_extra=schema(
                ENV_NAME_RULE,
                cel(
                    f"!(self in {list(PROTECTED_ENV)!r})",
                    "spec.env[].name is set by WorkerGroups for each rank: remove it; "
                    f"protected are {', '.join(PROTECTED_ENV)}",
                ),
            ),
        ),
    ]
    value: Annotated[str, Field(max_length=32768, description="Its value.")] = ""


class WorkerGroupSpec(ApiModel):
    """What a user asks for."""

    pools: Annotated[
        tuple[PoolRef, ...],
        Field(
            max_length=16,
            description="Pools that the group runs on; ranks are numbered through them in this order (verl's merge), "
            "and a pool may appear twice. Default: the pool of the group's own name.",
            json_schema_extra=schema(
                cel(
                    "size(self) > 0",
                    "spec.pools must name a pool: leave it out for the pool of the group's own name",
                ),
                x_kubernetes_list_type="atomic",
            ),
        ),
    ] = ()
    worker: Annotated[
        WorkerClass | None, Field(description="The ranks' class; a change makes the ranks anew. This, or `roles`.")
    ] = None
    roles: Annotated[
        tuple[Role, ...],
        Field(
            max_length=16,
            description="Classes of which each rank has one instance, all in its process; a change makes the ranks "
            "anew. `attach(name).spawn(roles)` has a handle for each.",
            json_schema_extra=dict(list_map("name")),
        ),
    ] = ()
    code: Annotated[
        Code | None,
        Field(description="Where the class comes from; a change makes the ranks anew. Default: it is in the image."),
    ] = None
    env: Annotated[
        tuple[EnvVar, ...],
        Field(
            max_length=128,
            description="Environment of every rank; a change makes the ranks anew.",
            json_schema_extra=dict(list_map("name"))
            | schema(
                cel(
                    f"self.map(v, size(v.name) + (has(v.value) ? size(v.value) : 0)).sum() <= {MAX_ENV_BYTES}",
                    f"spec.env may have {MAX_ENV_BYTES} characters in all, or no process can be started with it: move "
                    "large values into a file, or into a Secret or ConfigMap that the pool names in spec.envFrom",
                )
            ),
        ),
    ] = ()
    debug: Annotated[
        Literal["Off", "PostMortem"],
        Field(
            description="PostMortem: a rank pauses for a debugger before an exception leaves its constructor or a "
            "method. `breakpoint()` pauses it in any case. A change makes the ranks anew."
        ),
    ] = "Off"
    progress_deadline_seconds: Annotated[
        int,
        Field(ge=5, le=604800, description="After this many seconds without being ready, Ready says so; it goes on."),
    ] = 600

    @model_validator(mode="after")
    def _is_one_of_two(self) -> "WorkerGroupSpec":
        if (self.worker is None) != bool(self.roles):
            raise ValueError(_ONE_OF_TWO)
        return self

    def launch(self, restarted: str | None) -> Launch:
        """What the ranks are made from."""
        classes: dict[str, Any] = (
            {"roles": tuple(RoleLaunch(name=role.name, **_constructor(role)) for role in self.roles)}
            if self.worker is None
            else _constructor(self.worker)
        )
        return Launch(
            **classes,
            env={variable.name: variable.value for variable in self.env},
            config_map=self.code.config_map.name if self.code else None,
            restarted=restarted,
            post_mortem=True if self.debug == "PostMortem" else None,
        )


def _constructor(worker: WorkerClass) -> dict[str, Any]:
    return {"class_path": worker.class_, "init_args": worker.args, "init_kwargs": worker.kwargs_}


SPEC_RULES = schema(
    immutable("pools", _RECREATE),
    cel("has(self.worker) != (has(self.roles) && size(self.roles) > 0)", _ONE_OF_TWO),
)


class WorkerGroupStatus(ApiModel):
    """What is true: conditions by the operator, the ranks by the agent."""

    conditions: Conditions = ()
    observed_generation: Annotated[
        int | None, Field(description="The generation of the spec that the operator has seen.")
    ] = None
    deadline: Annotated[
        datetime | None, Field(description="By when the group is to be ready; absent when it is, or cannot be.")
    ] = None
    world_size: Annotated[int | None, Field(description="How many ranks the group is to have.")] = None
    ready_ranks: Annotated[int | None, Field(description="Ranks that are ready now.")] = None
    incarnation: Annotated[
        int | None, Field(description="Which making of the ranks this is; each loses the memory of the one before.")
    ] = None
    revision: Annotated[
        str | None,
        Field(description="Digest of the worker, env and code that this incarnation is made from, and of its bundles."),
    ] = None
    session: Annotated[str | None, Field(description="The Ray session that this incarnation belongs to.")] = None
    retries: Annotated[
        Retries | None, Field(description="Of launches that were cut short; absent if the last one was not.")
    ] = None
    ranks: Annotated[GroupReport | None, Field(description="What the agent sees of the ranks in Ray.")] = None


class WorkerGroup(ApiObject):
    """Registered Ray worker actors, one per rank."""

    spec: Annotated[WorkerGroupSpec, Field(description="What a user asks for.", json_schema_extra=SPEC_RULES)]
    status: Annotated[WorkerGroupStatus, Field(description="What is true.")] = WorkerGroupStatus()

    @property
    def pools(self) -> tuple[PoolRef, ...]:
        """The pools that the group runs on."""
        return self.spec.pools or (PoolRef(name=self.name),)

    @property
    def launch(self) -> Launch:
        """What its ranks are made from."""
        return launch_of(self.spec, self.metadata)


def launch_of(spec: WorkerGroupSpec, metadata: Mapping[str, Any]) -> Launch:
    """What the ranks of a group are made from."""
    restarted_at = (metadata.get("annotations") or {}).get(RESTARTED_AT_ANNOTATION)
    return spec.launch(None if restarted_at is None else digest(restarted_at))


OBJECT_RULES = schema(metadata_name("WorkerGroup"))
