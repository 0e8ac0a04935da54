"""WorkerGroup: Ray actors, one for each rank, on the bundles of one or more pools."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, model_validator

from workergroups_api.failure_policy import FailurePolicy
from workergroups_api.group_settings import CODE_RULES, ENV_FROM_RULES, ENV_VAR_RULES, Code, EnvVar
from workergroups_api.group_status import WorkerGroupStatus
from workergroups_api.launch import MAX_ENV_BYTES, Launch, RoleLaunch, digest
from workergroups_api.model import ANYTHING, ApiModel, ApiObject, cel, immutable, list_map, schema
from workergroups_api.names import RESTARTED_AT_ANNOTATION
from workergroups_api.plan import MAX_PARTS, MAX_POOL_BUNDLES
from workergroups_api.pod_settings import EnvFrom
from workergroups_api.resource_pool import MAX_NAME, dns_name, metadata_name
from workergroups_api.run import Run
from workergroups_api.vocabulary import Debug, Resize

_RECREATE = "delete the group and create it again"
_ONE_OF_TWO = (
    "spec.worker or spec.roles must say what the ranks are, and not both: for one class set spec.worker, for several "
    "in one process spec.roles"
)


class BundleRange(ApiModel):
    """Consecutive bundles of a pool, counted over its nodes in their order (verl's split)."""

    start: Annotated[int, Field(ge=0, le=MAX_POOL_BUNDLES - 1, description="The first bundle, counted from 0.")] = 0
    count: Annotated[int, Field(ge=1, le=MAX_POOL_BUNDLES, description="Number of bundles. Each bundle has one rank.")]


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
    bundles: Annotated[
        BundleRange | None, Field(description="The part of the pool that the group uses. Default: all bundles.")
    ] = None


class WorkerClass(ApiModel):
    """A class and the arguments of its constructor."""

    class_: Annotated[
        str,
        Field(
            alias="class",
            max_length=255,
            description="Import path of the class, such as `package.module.Class`.",
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
        Field(max_length=64, description="Positional arguments of the constructor: any JSON values."),
    ] = ()
    kwargs_: Annotated[
        # A null is Python's None. Without `nullable`, the API server would drop the argument.
        dict[str, Annotated[Any, Field(json_schema_extra=schema(nullable=True) | ANYTHING)]],
        Field(
            alias="kwargs",
            max_length=256,
            description="Keyword arguments of the constructor: any JSON values. Kubernetes stores 3.0 as 3, which "
            "Python reads as an int.",
        ),
    ] = {}


class Role(WorkerClass):
    """One of several classes. Each rank has an instance of each, in one process (verl's colocated classes)."""

    name: Annotated[
        str,
        Field(
            max_length=63,
            description="Name of the role, as the driver passes it to `spawn`.",
            json_schema_extra=schema(
                cel(
                    "self.matches('^[a-z][a-z0-9_]*$')",
                    "spec.roles[].name must be lower-case letters, digits and '_', and begin with a letter",
                )
            ),
        ),
    ]


class WorkerGroupSpec(ApiModel):
    """What the user wants."""

    pools: Annotated[
        tuple[PoolRef, ...],
        Field(
            max_length=MAX_PARTS,
            description="The pools that the group runs on. Ranks are numbered through them in this order (verl's "
            "merge). A pool may appear twice, with different bundles. Default: the pool with the group's name.",
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
        WorkerClass | None,
        Field(description="The class of the ranks. Set either this or `roles`. A change recreates the ranks."),
    ] = None
    roles: Annotated[
        tuple[Role, ...],
        Field(
            max_length=16,
            description="Several classes: each rank has an instance of each, in its process. Set either this or "
            "`worker`. `attach(name).spawn(roles)` returns a handle for each role. A change recreates the ranks.",
            json_schema_extra=dict(list_map("name")),
        ),
    ] = ()
    code: Annotated[
        Code | None,
        Field(
            description="Where the classes come from: a ConfigMap, or a directory in the pods. Default: the image. A "
            "change recreates the ranks.",
            json_schema_extra=CODE_RULES,
        ),
    ] = None
    env: Annotated[
        tuple[Annotated[EnvVar, Field(json_schema_extra=ENV_VAR_RULES)], ...],
        Field(
            max_length=128,
            description="Environment variables of each rank. A change recreates the ranks; a change of a Secret or a "
            "ConfigMap that `valueFrom` names does not.",
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
    env_from: Annotated[
        tuple[Annotated[EnvFrom, Field(json_schema_extra=ENV_FROM_RULES)], ...],
        Field(
            max_length=32,
            description="Secrets and ConfigMaps whose keys become environment variables of each rank. As in a "
            "container, later entries take precedence, and `env` over all of them. A change of the list recreates the "
            "ranks; a change of the objects does not.",
        ),
    ] = ()
    debug: Annotated[
        Debug,
        Field(
            description="PostMortem: a rank pauses for a debugger before an exception leaves its constructor or a "
            "method. Disabled: it does not. `breakpoint()` pauses it in both cases. A change recreates the ranks."
        ),
    ] = Debug.DISABLED
    failure_policy: Annotated[
        FailurePolicy,
        Field(description="What happens when a rank fails. A change does not recreate the ranks."),
    ] = FailurePolicy()
    run: Annotated[
        Run | None,
        Field(
            description="A method to call on all ranks once they are ready. When it has returned on all of them, the "
            "group is Complete, and its ranks end. If it raises an exception on a rank, `failurePolicy` decides. A "
            "change recreates the ranks, also of a group that has ended."
        ),
    ] = None
    active_deadline_seconds: Annotated[
        int | None,
        Field(
            ge=1,
            le=31536000,
            description="Only with `run`: if the group is not Complete this many seconds after its ranks were first "
            "asked for, its ranks end, and it is Failed with the reason DeadlineExceeded. Default: no limit.",
        ),
    ] = None
    ttl_seconds_after_finished: Annotated[
        int | None,
        Field(
            ge=0,
            le=31536000,
            description="Only with `run`: the operator deletes the group this many seconds after it is Complete or "
            "Failed. Default: it stays.",
        ),
    ] = None
    resize: Annotated[
        Resize,
        Field(
            description="What happens when a pool that the group uses without `bundles` gets other `nodes`. Never: the "
            "ranks stay, on the nodes that they have, until they are recreated for another reason. Follow: the ranks "
            "are recreated on all nodes, as soon as the bundles of new nodes are reserved."
        ),
    ] = Resize.NEVER
    suspend: Annotated[
        bool,
        Field(
            description="true: the ranks end, and other groups can use their bundles, which the pool keeps. false: the "
            "group gets new ranks, once its bundles are free."
        ),
    ] = False
    progress_deadline_seconds: Annotated[
        int,
        Field(
            ge=5,
            le=604800,
            description="If the group is not ready after this many seconds, Progressing is False, with the reason "
            "ProgressDeadlineExceeded. The operator keeps trying.",
        ),
    ] = 600

    @model_validator(mode="after")
    def _is_one_of_two(self) -> "WorkerGroupSpec":
        if (self.worker is None) != bool(self.roles):
            raise ValueError(_ONE_OF_TWO)
        return self

    def launch(self, restarted: str | None) -> Launch:
        """Return what the ranks are created from."""
        classes: dict[str, Any] = (
            {"roles": tuple(RoleLaunch(name=role.name, **_constructor(role)) for role in self.roles)}
            if self.worker is None
            else _constructor(self.worker)
        )
        code = self.code or Code()
        return Launch(
            **classes,
            env={variable.name: variable.value or "" for variable in self.env if variable.value_from is None},
            env_sources=self.env_sources or None,
            config_map=self.code_config_map,
            config_map_items=(code.config_map.items or None) if code.config_map else None,
            code_path=code.path,
            restarted=restarted,
            post_mortem=True if self.debug is Debug.POST_MORTEM else None,
            run=self.run.launch if self.run else None,
        )

    @property
    def env_sources(self) -> tuple[dict[str, Any], ...]:
        """The variables and objects whose values only the operator reads."""
        sources = (*(each for each in self.env if each.value_from is not None), *self.env_from)
        return tuple(source.to_json() for source in sources)

    @property
    def code_config_map(self) -> str | None:
        """Name of the ConfigMap with the code, None if the code comes from elsewhere."""
        return self.code.config_map.name if self.code and self.code.config_map else None


def _constructor(worker: WorkerClass) -> dict[str, Any]:
    return {"class_path": worker.class_, "init_args": worker.args, "init_kwargs": worker.kwargs_}


SPEC_RULES = schema(
    immutable("pools", _RECREATE),
    cel(
        "!has(self.resize) || self.resize != 'Follow' || !has(self.pools) || self.pools.exists(p, !has(p.bundles))",
        "spec.resize: Follow needs an entry of spec.pools without bundles, whose size can change: leave out resize, or "
        "create the group without bundles",
        ".resize",
    ),
    cel("has(self.worker) != (has(self.roles) && size(self.roles) > 0)", _ONE_OF_TWO),
    cel(
        "!has(self.run) || has(self.worker)",
        "spec.run needs spec.worker, whose class has the method: with spec.roles, call the methods from a driver",
        ".run",
    ),
    cel(
        "!has(self.run) || !has(self.failurePolicy) || !has(self.failurePolicy.restart) || "
        "self.failurePolicy.restart != 'Rank'",
        "spec.run cannot be used with spec.failurePolicy.restart: Rank, since the ranks of a run begin and end "
        "together: set restart to Group or Never",
        ".failurePolicy.restart",
    ),
    cel(
        "!has(self.activeDeadlineSeconds) || has(self.run)",
        "spec.activeDeadlineSeconds needs spec.run, since other groups do not end: set spec.run, or remove it",
        ".activeDeadlineSeconds",
    ),
    cel(
        "!has(self.ttlSecondsAfterFinished) || has(self.run)",
        "spec.ttlSecondsAfterFinished needs spec.run, since other groups do not end: set spec.run, or remove it",
        ".ttlSecondsAfterFinished",
    ),
)


class WorkerGroup(ApiObject):
    """A group of ranks, each of them a Ray actor."""

    spec: Annotated[WorkerGroupSpec, Field(description="The desired state.", json_schema_extra=SPEC_RULES)]
    status: Annotated[WorkerGroupStatus, Field(description="The observed state.")] = WorkerGroupStatus()

    @property
    def pools(self) -> tuple[PoolRef, ...]:
        """The pools that the group runs on."""
        return self.spec.pools or (PoolRef(name=self.name),)

    @property
    def launch(self) -> Launch:
        """What its ranks are created from."""
        return launch_of(self.spec, self.metadata)


def launch_of(spec: WorkerGroupSpec, metadata: Mapping[str, Any]) -> Launch:
    """Return what the ranks of a group are created from."""
    restarted_at = (metadata.get("annotations") or {}).get(RESTARTED_AT_ANNOTATION)
    return spec.launch(None if restarted_at is None else digest(restarted_at))


OBJECT_RULES = schema(metadata_name("WorkerGroup"))
