"""WorkerGroups from outside the cluster: pools, groups and jobs by their names, without Ray.

``Pool("ppo").submit(["python", "train.py"], working_dir=".")``
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workergroups.checking.findings import CheckFinding
    from workergroups_api.conditions import Condition
    from workergroups_api.report import DeadRank

    from .api_server.cluster import Cluster
    from .errors import (
        CannotBeReadyError,
        ClientError,
        ConflictError,
        DeadlineError,
        ForbiddenError,
        NotFoundError,
        NotInstalledError,
        NotRunningError,
        NotSeenError,
        UnauthorizedError,
        UnreachableError,
    )
    from .handles.group import Group
    from .handles.pool import Pool
    from .jobs.jobs import Job
    from .jobs.records import JobRecord
    from .objects.status import Status
    from .pods.checks import Check
    from .pods.pauses import PausedProcess
    from .pods.previous import PreviousLog
    from .ray_cluster.connection import RayConnection
    from .ray_cluster.ranks import RankActor

__all__ = [
    "CannotBeReadyError",
    "Check",
    "CheckFinding",
    "ClientError",
    "Cluster",
    "Condition",
    "ConflictError",
    "DeadRank",
    "DeadlineError",
    "ForbiddenError",
    "Group",
    "Job",
    "JobRecord",
    "NotFoundError",
    "NotInstalledError",
    "NotRunningError",
    "NotSeenError",
    "PausedProcess",
    "Pool",
    "PreviousLog",
    "RankActor",
    "RayConnection",
    "Status",
    "UnauthorizedError",
    "UnreachableError",
]

_MODULES = {
    "CannotBeReadyError": ".errors",
    "Check": ".pods.checks",
    "CheckFinding": "workergroups.checking.findings",
    "ClientError": ".errors",
    "Cluster": ".api_server.cluster",
    "Condition": "workergroups_api.conditions",
    "ConflictError": ".errors",
    "DeadRank": "workergroups_api.report",
    "DeadlineError": ".errors",
    "ForbiddenError": ".errors",
    "Group": ".handles.group",
    "Job": ".jobs.jobs",
    "JobRecord": ".jobs.records",
    "NotFoundError": ".errors",
    "NotInstalledError": ".errors",
    "NotRunningError": ".errors",
    "NotSeenError": ".errors",
    "PausedProcess": ".pods.pauses",
    "Pool": ".handles.pool",
    "PreviousLog": ".pods.previous",
    "RankActor": ".ray_cluster.ranks",
    "RayConnection": ".ray_cluster.connection",
    "Status": ".objects.status",
    "UnauthorizedError": ".errors",
    "UnreachableError": ".errors",
}


def __getattr__(name: str) -> Any:
    """Import a name when it is first used: all of them together take a noticeable time."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name], __name__), name)
