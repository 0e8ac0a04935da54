"""Pools, groups and jobs from outside the cluster; needs no Ray: ``pip install 'workergroups[cli]'``."""

from workergroups_client import (
    CannotBeReadyError,
    ClientError,
    Cluster,
    Condition,
    DeadlineError,
    Group,
    Job,
    JobRecord,
    NotFoundError,
    Pool,
    Rank,
    RayConnection,
    Status,
    UnreachableError,
)

__all__ = [
    "CannotBeReadyError",
    "ClientError",
    "Cluster",
    "Condition",
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
