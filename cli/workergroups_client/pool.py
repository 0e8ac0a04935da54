"""A pool by its name: its status, its jobs, and a connection to its Ray cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from workergroups_api.vocabulary import JobVariable

from . import checks, jobs, names, secret_env
from .cluster import Cluster
from .handle import Handle
from .jobs import Job, JobRecord
from .reading import pool_spec
from .runtime_env import merged, send
from .waiting import Tell, silently
from .waking import wake


class Pool(Handle):
    """A ResourcePool that exists.

    Args:
        name: The name of the pool, or of a group on it.
        cluster: Its cluster; by default the kubeconfig's current context and namespace.
        tell: Called with progress messages.

    Raises:
        NotFoundError: There is no such pool; the message names similar ones.
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
        """Start a command as a Ray job on the head of the pool's Ray cluster.

        The variables WG_NODES and WG_PROCESSES_PER_NODE tell the command the size of the pool.

        Args:
            command: The program and its arguments; no shell changes them.
            working_dir: A directory of this machine; the job runs in a copy of it.
            runtime_env: A runtime environment as Ray defines it; its directories on this machine are sent.
            env: Variables of the job and of its tasks and actors. All who can see the job can see them, so they are no
                place for passwords.
            env_from: Secrets whose keys become variables of the command, as ``secret/NAME``, or ``secret/NAME:KEY`` for
                one key. The job's record does not show their values. Tasks and actors do not get them; use the pool's
                ``env`` for that. ``env`` wins over a key of the same name.
            job_id: The submission id; by default the pool's name and some random letters.
        """
        self.wake()
        spec = pool_spec(self.target)
        shape = {
            JobVariable.NODES.value: str(spec.nodes),
            JobVariable.PROCESSES_PER_NODE.value: str(spec.processes_per_node),
        }
        directory = Path(working_dir) if working_dir is not None else None
        wanted = merged(runtime_env or {}, directory, {**shape, **(env or {})})
        secrets = secret_env.variables_of(self.cluster, env_from)
        ready = send(wanted, self.ray.api)
        hidden = {name: value for name, value in secrets.items() if name not in wanted["env_vars"]}
        with secret_env.handed_over(self.cluster, self.target, hidden) as before:
            return jobs.submit(self.ray.api, self.name, command, ready, job_id, before=before)

    def wake(self) -> None:
        """Start the pool if the operator has suspended it because nobody used it, and wait until it is ready.

        From now on, the pool counts as used for the time in its ``spec.idle``. A pool without it is left as it is, and
        so is one that its user has suspended.

        Raises:
            CannotBeReadyError: Waiting does not help.
            DeadlineError: The operator does not see the annotation, or the pool is not ready for a day.
        """
        wake(self.cluster, self.target, self._tell)

    def check(self, *, fabric: bool = False) -> checks.Check:
        """Check whether the nodes have what the pool asks for, and reach each other.

        Args:
            fabric: Also measure an all-reduce over the pool's processes, which takes a share of each device for a
                while, and look for the adapters that NCCL is configured to use.

        Raises:
            DeadlineError: The head did not answer in time. A node that does not answer is a finding.
        """
        return checks.check(self.cluster, self.target, fabric=fabric)

    def jobs(self) -> list[JobRecord]:
        """Return the jobs that were submitted to the pool's Ray cluster, the latest first."""
        return jobs.list_records(self.ray.api)

    def job(self, job_id: str) -> Job:
        """Return a job by its id."""
        return Job(job_id, self.ray.api, self.name)
