"""A pool, by its name: its status, its jobs, a connection to its Ray."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from . import jobs, names
from .cluster import Cluster
from .jobs import Job, JobRecord
from .on_ray import OnRay
from .runtime_env import merged, send
from .waiting import Tell, silently


class Pool(OnRay):
    """A ResourcePool that exists.

    Args:
        name: Its name, or that of a group on it.
        cluster: Where; by default the kubeconfig's current context and its namespace.
        tell: Told what is waited for.

    Raises:
        NotFoundError: There is none; says which there are.
    """

    def __init__(self, name: str, cluster: Cluster | None = None, tell: Tell = silently) -> None:
        cluster = cluster or Cluster()
        target = names.find(cluster, name, names.POOL, names.GROUP)
        super().__init__(cluster, target if target.what == names.POOL else names.first_pool(cluster, target), tell)

    def submit(
        self,
        command: Sequence[str],
        *,
        working_dir: str | Path | None = None,
        runtime_env: Mapping[str, Any] | None = None,
        env: Mapping[str, str] | None = None,
        job_id: str | None = None,
    ) -> Job:
        """Start a command as a Ray job, on the head of the pool's cluster.

        It finds the pool's size in WG_NODES and WG_PROCESSES_PER_NODE.

        Args:
            command: The program and its arguments; each arrives as it is, no shell changes it.
            working_dir: A directory of this machine whose files the job finds in its own.
            runtime_env: As Ray has it; directories of this machine are sent.
            env: Variables of the job and of what it starts. Whoever sees the job sees them: no place for passwords.
            job_id: By default the pool's name and some random letters.
        """
        spec = self.target.manifest["spec"]
        shape = {"WG_NODES": str(spec.get("nodes", 1)), "WG_PROCESSES_PER_NODE": str(spec["processesPerNode"])}
        directory = Path(working_dir) if working_dir is not None else None
        wanted = merged(runtime_env or {}, directory, {**shape, **(env or {})})
        return jobs.submit(self.ray.api, self.name, command, send(wanted, self.ray.api), job_id)

    def jobs(self) -> list[JobRecord]:
        """The jobs that were submitted to its cluster, the latest first."""
        return jobs.list_records(self.ray.api)

    def job(self, job_id: str) -> Job:
        """One of them."""
        return Job(job_id, self.ray.api, self.name)
