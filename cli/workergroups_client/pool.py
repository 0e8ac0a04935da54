"""A pool, by its name: its status, its jobs, a connection to its Ray."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from . import jobs, names
from .cluster import Cluster
from .connection import RayConnection
from .jobs import Job, JobRecord
from .runtime_env import merged, send
from .status import Status, status_of
from .waiting import Tell, silently


class Pool:
    """A ResourcePool that exists.

    Args:
        name: Its name, or that of a group on it.
        cluster: Where; by default the kubeconfig's current context and its namespace.
        tell: Told what is waited for.

    Raises:
        NotFoundError: There is none; says which there are.
    """

    def __init__(self, name: str, cluster: Cluster | None = None, tell: Tell = silently) -> None:
        self.cluster = cluster or Cluster()
        self._tell = tell
        target = names.find(self.cluster, name, names.POOL, names.GROUP)
        self._target = target if target.what == names.POOL else names.first_pool(self.cluster, target)

    @property
    def name(self) -> str:
        """Its name."""
        return self._target.name

    @property
    def ray_cluster(self) -> str:
        """The name of its RayCluster, which other pools may share."""
        return names.ray_cluster(self.cluster, self._target)

    @property
    def status(self) -> Status:
        """As it is now."""
        return status_of(names.find(self.cluster, f"{names.POOL}/{self.name}"))

    @cached_property
    def ray(self) -> RayConnection:
        """A connection to its Ray, made when it is first asked for; `close` ends it."""
        return RayConnection(self.cluster, self.ray_cluster, tell=self._tell)

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
        spec = self._target.manifest["spec"]
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

    def close(self) -> None:
        """End the connection to its Ray, if there is one."""
        if "ray" in self.__dict__:
            self.ray.close()

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
