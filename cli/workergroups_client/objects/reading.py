"""Custom resources and the agent's answers, read through the models of the API package.

The models tolerate fields that they do not know. They need pydantic, whose import takes a noticeable time, so they are
imported when the first object is read and not when the commands are defined.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import ClientError
from .names import Target

if TYPE_CHECKING:
    from workergroups_api.group_status import WorkerGroupStatus
    from workergroups_api.model import ApiModel
    from workergroups_api.pool_status import ResourcePoolStatus
    from workergroups_api.resource_pool import ResourcePoolSpec
    from workergroups_api.status_summary import GroupSummary, PoolSummary

    _Model = TypeVar("_Model", bound=ApiModel)


def pool_spec(pool: Target) -> ResourcePoolSpec:
    """Return the spec of a pool.

    Raises:
        ClientError: The spec has a value that this version cannot read.
    """
    from workergroups_api.resource_pool import ResourcePoolSpec

    return read(ResourcePoolSpec, pool, "spec", pool.manifest["spec"])


def pool_summary(pool: Target) -> PoolSummary:
    """Return whether a pool is ready, in a fraction of the time that its whole status takes; see `pool_status`."""
    from workergroups_api.status_summary import PoolSummary

    return _read_status(PoolSummary, pool)


def group_summary(group: Target) -> GroupSummary:
    """Return whether a group is ready, in a fraction of the time that its whole status takes; see `group_status`."""
    from workergroups_api.status_summary import GroupSummary

    return _read_status(GroupSummary, group)


def pool_status(pool: Target) -> ResourcePoolStatus:
    """Return the status of a pool; an empty one before the operator has seen the pool.

    Raises:
        ClientError: The status has a value that this version cannot read.
    """
    from workergroups_api.pool_status import ResourcePoolStatus

    return _read_status(ResourcePoolStatus, pool)


def group_status(group: Target) -> WorkerGroupStatus:
    """Return the status of a group; an empty one before the operator has seen the group.

    Raises:
        ClientError: The status has a value that this version cannot read.
    """
    from workergroups_api.group_status import WorkerGroupStatus

    return _read_status(WorkerGroupStatus, group)


def _read_status(model: type[_Model], target: Target) -> _Model:
    return read(model, target, "status", target.manifest.get("status") or {})


def read(model: type[_Model], target: Target, part: str, value: Any) -> _Model:
    """Return a value as an object of a model.

    Args:
        model: The model.
        target: The pool or group that the value belongs to, for messages.
        part: What the value is of the pool or group, for messages, such as ``spec``.
        value: The value, as parsed from JSON.

    Raises:
        ClientError: This version cannot read the value; the message names the field.
    """
    from pydantic import ValidationError

    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(map(str, (part, *first["loc"])))
        raise ClientError(
            f"{target}: {field} cannot be read ({first['msg']}). If the operator has another version than this command "
            f"(workergroups --version), install the operator's version"
        ) from error
