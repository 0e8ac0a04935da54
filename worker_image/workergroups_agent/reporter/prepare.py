"""Prepare what the executor launches a group from: a pure function of the plan, the WorkerGroup and its code."""

from collections.abc import Mapping

from pydantic import ValidationError

from workergroups_agent.exchange import PreparedLaunch
from workergroups_agent.reporter.known import CodeFiles, Found, FoundCode, Unreadable
from workergroups_api.conditions import Explanation
from workergroups_api.launch import Launch, revision
from workergroups_api.plan import PlannedGroup
from workergroups_api.vocabulary import LaunchState
from workergroups_api.worker_group import WorkerGroupSpec, launch_of


class Missing(Exception):
    """The group cannot be launched yet; the message is a sentence that says what is missing."""


def prepare(planned: PlannedGroup, group: Found, code: Mapping[str, FoundCode]) -> PreparedLaunch:
    """Return the launch if the group's current version is the planned one, or else what it waits for."""
    try:
        launch = read_launch(planned, group)
        found = _code(launch, code)
        there = _revision(launch, found)
        if there != planned.launch_revision:
            raise Missing("the WorkerGroup or its code has changed: waiting for the operator's plan for it")
        files = None if found is None else _placed(launch, found.files)
    except Missing as missing:
        return without(planned.uid, str(missing))
    if launch.env_sources is not None and planned.environment is None:
        why = "waiting for the operator to read the Secrets and ConfigMaps that spec.env and spec.envFrom name"
        return PreparedLaunch(uid=planned.uid, missing=Explanation(LaunchState.WAITING_FOR_ENVIRONMENT, why))
    return PreparedLaunch(uid=planned.uid, revision=there, launch=launch, files=files)


def without(uid: str, message: str) -> PreparedLaunch:
    """Return what a launch waits for, instead of the launch."""
    return PreparedLaunch(uid=uid, missing=Explanation(LaunchState.WAITING_FOR_CODE, message))


def read_launch(planned: PlannedGroup, group: Found) -> Launch:
    """Return what the WorkerGroup says about its ranks.

    Raises:
        Missing: It does not exist, or cannot be read.
    """
    if isinstance(group, Unreadable):
        raise Missing(f"the agent cannot read the WorkerGroup: {group.why}")
    if not isinstance(group, dict) or not is_planned(planned, group):
        raise Missing("waiting for the agent's reporter to see the WorkerGroup")
    try:
        # Only the spec is read: an odd status from an older version must not get in the way.
        return launch_of(WorkerGroupSpec.model_validate(group.get("spec")), group["metadata"])
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        field = ".".join(["spec", *map(str, first["loc"])])
        raise Missing(f"the WorkerGroup cannot be read: {field}: {first['msg']}") from None
    except (TypeError, ValueError, RecursionError) as error:
        raise Missing(f"the WorkerGroup cannot be read: {type(error).__name__}") from None


def is_planned(planned: PlannedGroup, group: Found) -> bool:
    """Return whether this is the object that the plan means."""
    return isinstance(group, dict) and group["metadata"].get("uid") == planned.uid


def _code(launch: Launch, code: Mapping[str, FoundCode]) -> CodeFiles | None:
    name = launch.config_map
    if name is None:
        return None
    if name not in code:
        raise Missing(f"spec.code.configMap: waiting for the agent's reporter to read ConfigMap {name}")
    found = code[name]
    if isinstance(found, Unreadable):
        raise Missing(f"spec.code.configMap: the agent cannot read ConfigMap {name}: {found.why}")
    if found is None:
        raise Missing(f"spec.code.configMap: there is no ConfigMap {name}: create it")
    return found


def _placed(launch: Launch, files: Mapping[str, str]) -> dict[str, str]:
    """Return the files of the code by their paths."""
    if launch.config_map_items is None:
        return dict(files)
    for number, item in enumerate(launch.config_map_items):
        if item.key not in files:
            raise Missing(
                f"spec.code.configMap.items[{number}]: ConfigMap {launch.config_map} has no key {item.key}: add it, or "
                "correct the key"
            )
    return {item.path: files[item.key] for item in launch.config_map_items}


def _revision(launch: Launch, code: CodeFiles | None) -> str | None:
    try:
        return revision(launch, code.digest if code else None)
    except (ValueError, RecursionError):
        raise Missing("spec.worker: the arguments are nested too deeply: make them flatter") from None
