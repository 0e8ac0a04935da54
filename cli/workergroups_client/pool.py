"""A pool, by its name: its status, its jobs, a connection to its Ray."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import checks, jobs, names, secret_env
from .cluster import Cluster
from .handle import Handle
from .jobs import Job, JobRecord
from .reading import pool_spec
from .runtime_env import merged, send
from .waiting import Tell, silently


class Pool(Handle):
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
        env_from: Iterable[str] = (),
        job_id: str | None = None,
    ) -> Job:
        """Start a command as a Ray job, on the head of the pool's cluster.

        It finds the pool's size in WG_NODES and WG_PROCESSES_PER_NODE.

        Args:
            command: The program and its arguments; each arrives as it is, no shell changes it.
            working_dir: A directory of this machine whose files the job finds in its own.
            runtime_env: As Ray has it; directories of this machine are sent.
            env: Variables of the job and of what it starts. Whoever sees the job sees them: no place for passwords.
            env_from: Secrets whose keys are variables of the command too, as ``secret/NAME``, or ``secret/NAME:KEY``
                for one. Nobody sees their values. Tasks and actors do not have them; what the pool's ``env`` names,
                they have. Of a variable that ``env`` has as well, that value counts.
            job_id: By default the pool's name and some random letters.
        """
        spec = pool_spec(self.target)
        shape = {"WG_NODES": str(spec.nodes), "WG_PROCESSES_PER_NODE": str(spec.processes_per_node)}
        directory = Path(working_dir) if working_dir is not None else None
        wanted = merged(runtime_env or {}, directory, {**shape, **(env or {})})
        secrets = secret_env.variables_of(self.cluster, env_from)
        ready = send(wanted, self.ray.api)
        hidden = {name: value for name, value in secrets.items() if name not in wanted["env_vars"]}
        with secret_env.handed_over(self.cluster, self.target, hidden) as before:
            return jobs.submit(self.ray.api, self.name, command, ready, job_id, before=before)

    def check(self, *, fabric: bool = False) -> checks.Check:
        """Whether its nodes have what it asks for, and reach each other.

        Args:
            fabric: Measure an all-reduce over its processes too, which takes a share of each device for a while, and
                look for the adapters that NCCL is told to use.

        Raises:
            DeadlineError: Its head does not answer. A node that does not is part of what is found.
        """
        return checks.check(self.cluster, self.target, fabric=fabric)

    def jobs(self) -> list[JobRecord]:
        """The jobs that were submitted to its cluster, the latest first."""
        return jobs.list_records(self.ray.api)

    def job(self, job_id: str) -> Job:
        """One of them."""
        return Job(job_id, self.ray.api, self.name)
