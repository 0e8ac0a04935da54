"""WorkerGroups from outside the cluster: pools, groups and jobs by their names, without Ray.

``Pool("ppo").submit(["python", "train.py"], working_dir=".")``
"""

from __future__ import annotations

from .cluster import Cluster
from .connection import RayConnection
from .errors import CannotBeReadyError, ClientError, DeadlineError, NotFoundError, UnreachableError
from .group import Group
from .jobs import Job, JobRecord
from .pool import Pool
from .previous import DeadRank
from .ranks import Rank
from .status import Condition, Status

__all__ = [
    "CannotBeReadyError",
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
    "Rank",
    "RayConnection",
    "Status",
    "UnreachableError",
]
