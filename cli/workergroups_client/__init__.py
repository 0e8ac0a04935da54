"""WorkerGroups from outside the cluster: pools, groups and jobs by their names, without Ray.

``Pool("ppo").submit(["python", "train.py"], working_dir=".")``
"""

from __future__ import annotations

from .checks import Check
from .cluster import Cluster
from .connection import RayConnection
from .errors import CannotBeReadyError, ClientError, DeadlineError, NotFoundError, UnreachableError
from .findings import Finding
from .group import Group
from .jobs import Job, JobRecord
from .pool import Pool
from .previous import DeadRank
from .ranks import Rank
from .status import Condition, Status

__all__ = [
    "CannotBeReadyError",
    "Check",
    "ClientError",
    "Cluster",
    "Condition",
    "DeadRank",
    "DeadlineError",
    "Finding",
    "Group",
    "Job",
    "JobRecord",
    "NotFoundError",
    "Pool",
    "Rank",
    "RayConnection",
    "Status",
    "UnreachableError",
]
