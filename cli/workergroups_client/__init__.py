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

    from .checks import Check
    from .cluster import Cluster
    from .connection import RayConnection
    from .errors import CannotBeReadyError, ClientError, DeadlineError, NotFoundError, UnreachableError
    from .group import Group
    from .jobs import Job, JobRecord
    from .pauses import PausedProcess
    from .pool import Pool
    from .previous import PreviousLog
    from .ranks import RankActor
    from .status import Status

__all__ = [
    "CannotBeReadyError",
    "Check",
    "CheckFinding",
    "ClientError",
    "Cluster",
    "Condition",
    "DeadRank",
    "DeadlineError",
    "Group",
    "Job",
    "JobRecord",
    "NotFoundError",
    "PausedProcess",
    "Pool",
    "PreviousLog",
    "RankActor",
    "RayConnection",
    "Status",
    "UnreachableError",
]

_MODULES = {
    "CannotBeReadyError": ".errors",
    "Check": ".checks",
    "CheckFinding": "workergroups.checking.findings",
    "ClientError": ".errors",
    "Cluster": ".cluster",
    "Condition": "workergroups_api.conditions",
    "DeadRank": "workergroups_api.report",
    "DeadlineError": ".errors",
    "Group": ".group",
    "Job": ".jobs",
    "JobRecord": ".jobs",
    "NotFoundError": ".errors",
    "PausedProcess": ".pauses",
    "Pool": ".pool",
    "PreviousLog": ".previous",
    "RankActor": ".ranks",
    "RayConnection": ".connection",
    "Status": ".status",
    "UnreachableError": ".errors",
}


def __getattr__(name: str) -> Any:
    """Import a name when it is first used: all of them together take a noticeable time."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name], __name__), name)
