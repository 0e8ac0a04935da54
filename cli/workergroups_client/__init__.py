"""WorkerGroups from outside the cluster: pools, groups and jobs by their names, without Ray.

``Pool("ppo").submit(["python", "train.py"], working_dir=".")``
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from workergroups.checking.findings import CheckFinding

from .checks import Check
from .cluster import Cluster
from .connection import RayConnection
from .errors import CannotBeReadyError, ClientError, DeadlineError, NotFoundError, UnreachableError
from .group import Group
from .jobs import Job, JobRecord
from .pool import Pool
from .previous import PreviousLog
from .ranks import RankActor
from .status import Status

if TYPE_CHECKING:
    from workergroups_api.conditions import Condition
    from workergroups_api.dead_rank import DeadRank
    from workergroups_api.report import RankPause

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
    "Pool",
    "PreviousLog",
    "RankActor",
    "RankPause",
    "RayConnection",
    "Status",
    "UnreachableError",
]

_MODELS = {"Condition": "conditions", "DeadRank": "dead_rank", "RankPause": "report"}


def __getattr__(name: str) -> Any:
    """Import a model of the API when it is first used: models need pydantic, which takes a noticeable time."""
    if name not in _MODELS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"workergroups_api.{_MODELS[name]}"), name)
