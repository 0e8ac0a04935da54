"""Calls of a job in ranks of groups. They go on when the job ends, since Ray interrupts no call."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from workergroups_common.ranges import ranges

from ..ray_cluster.ranks import rank_rows, rows
from ..ray_cluster.ray_api import RayApi


@dataclass(frozen=True)
class LeftCall:
    """A method that a job has called, and that has not returned on some ranks of a group."""

    group: str
    method: str
    ranks: str
    """As ranges, such as ``0-2,5``."""

    def __str__(self) -> str:
        who = f"rank {self.ranks} is" if self.ranks.isdigit() else f"ranks {self.ranks} are"
        return (
            f"{who} still in {self.method} of group {self.group}, since Ray interrupts no call, and other calls wait: "
            f"workergroups restart {self.group} ends it"
        )


def left_calls(ray: RayApi, submission_id: str) -> list[LeftCall]:
    """Return the calls of a job's driver that run in ranks of groups."""
    job_id = ray.get(f"/api/jobs/{submission_id}").get("job_id")
    if not job_id:
        return []
    tasks = rows(ray, "/api/v0/tasks", filter_keys="state", filter_predicates="=", filter_values="RUNNING")
    # To Ray, a call belongs to the job that has created the rank. The id of its caller ends with that of the caller's.
    own = [task for task in tasks if str(task["parent_task_id"]).endswith(job_id)]
    running = [(task["actor_id"], task["name"].rpartition(".")[2]) for task in own]
    if not running:
        return []
    names = {actor["actor_id"]: name for name, actor in rank_rows(ray)}
    found: dict[tuple[str, str], set[int]] = defaultdict(set)
    for actor_id, method in running:
        if (name := names.get(actor_id)) is not None:
            found[name.group, method].add(name.rank)
    return [LeftCall(group, method, ranges(ranks)) for (group, method), ranks in sorted(found.items())]
