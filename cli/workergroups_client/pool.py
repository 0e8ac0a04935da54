"""A pool by its name: its status, its jobs, and a connection to its Ray cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from . import checks, jobs, names
from .attempts import Attempts
from .cluster import Cluster
from .handle import Handle
from .jobs import Job, JobRecord
from .kept_records import KeptRecords
from .submission import Submission
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
        retries: int = 0,
        on_retry: Tell = silently,
    ) -> Job:
        """Start a command as a Ray job on the head of the pool's Ray cluster.

        The variables WG_NODES and WG_PROCESSES_PER_NODE tell the command the size of the pool, and WG_ATTEMPT which
        attempt of the job it is.

        Args:
            command: The program and its arguments; no shell changes them.
            working_dir: A directory of this machine; the job runs in a copy of it.
            runtime_env: A runtime environment as Ray defines it; its directories on this machine are sent.
            env: Variables of the job and of its tasks and actors. All who can see the job can see them, so they are no
                place for passwords.
            env_from: Secrets whose keys become variables of the command, as ``secret/NAME``, or ``secret/NAME:KEY`` for
                one key. The job's record does not show their values. Tasks and actors do not get them; use the pool's
                ``env`` for that. ``env`` wins over a key of the same name.
            job_id: The submission id; by default the pool's name and some random letters. With ``retries``, each
                attempt has an id of its own, which is this id with the number of the attempt.
            retries: How often to submit the job again if its driver fails, or is lost with Ray's head. This happens
                while the program is in the job's ``wait`` or ``logs(follow=True)``, and only when the attempt before
                has surely ended, and the pool and the groups on it are ready.
            on_retry: Called with why an attempt ended, and when the next one begins.
        """
        self.wake()
        submission = Submission.of(self.target, command, working_dir, runtime_env, env, env_from, job_id)
        return Attempts(self, submission, retries, on_retry).job(self._tell)

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
        return Job(job_id, self.ray.api, self.name, self.kept)

    @cached_property
    def kept(self) -> KeptRecords:
        """The records of jobs that outlive the head of the pool's Ray cluster."""
        return KeptRecords(self.cluster, self.ray_cluster)
