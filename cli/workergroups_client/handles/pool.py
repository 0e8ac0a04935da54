"""A pool by its name: its status, its jobs, and a connection to its Ray cluster."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workergroups_api.manifest import RESOURCE_POOL
from workergroups_api.names import RESTARTED_AT_ANNOTATION
from workergroups_api.vocabulary import ConditionType, Reason

from ..api_server.cluster import Cluster
from ..errors import ClientError, DeadlineError, UnreachableError
from ..jobs import jobs
from ..jobs.attempts import Attempts
from ..jobs.jobs import Job
from ..jobs.kept_records import KeptRecords
from ..jobs.records import JobRecord
from ..jobs.submission import Submission
from ..objects import names
from ..objects.reading import pool_status
from ..objects.suspending import wake
from ..pods import checks
from ..pods.processes import Processes
from ..ray_cluster.handle import Handle
from ..waiting import Tell, look_again, silently

if TYPE_CHECKING:
    from workergroups_api.pool_status import ResourcePoolStatus

_TAKEN_UP_SECONDS = 30
# Until the status cannot be one from before the restart was asked for.
_SEEN_SECONDS = 3
# For the new images to be pulled.
_IMAGE_SECONDS = 86400.0


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
        node: int | None = None,
        retries: int = 0,
        on_retry: Tell = silently,
    ) -> Job:
        """Start a command as a Ray job of the pool's Ray cluster.

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
                attempt has its own id, which is this one with the number of the attempt.
            node: The number of the node of the pool on which the driver runs, from 0; by default it runs on the head.
                On a node, it sees all devices of the node. It reserves none: ranks and other processes keep theirs.
            retries: How often to submit the job again if its driver fails, or is lost with Ray's head. This happens
                while the program is in the job's ``wait`` or ``logs(follow=True)``, and only when the attempt before
                has surely ended, and the pool and the groups on it are ready.
            on_retry: Called with why an attempt ended, and when the next one begins.
        """
        self.wake()
        submission = Submission.of(self.target, command, working_dir, runtime_env, env, env_from, job_id, node)
        return Attempts(self, self.kept, submission, retries, on_retry).job(self._tell)

    def wake(self) -> None:
        """Start the pool if the operator has suspended it because it was idle, and wait until it is ready.

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

    def restart(self) -> None:
        """Replace the pool's nodes by nodes of its present spec, one by one; return when the operator has begun.

        The ranks of the groups on the pool end now, and the groups get a new incarnation when the last node is
        replaced. If the pool shapes the head of its Ray cluster, and the head's settings have changed, the head is
        replaced first, and with it all jobs and the ranks of all groups on the cluster.

        Raises:
            ClientError: The API server refuses the new pods, or a new image cannot be pulled, so that everything keeps
                running as it is.
            DeadlineError: The operator has not begun in time.
        """
        from workergroups_api.conditions import find
        from workergroups_api.launch import digest

        now = datetime.now(timezone.utc).isoformat()
        self.cluster.annotate(RESOURCE_POOL, self.name, RESTARTED_AT_ANNOTATION, now)
        since, why = time.monotonic(), None
        for _ in look_again(_IMAGE_SECONDS):
            try:
                status = self._present_status()
            except UnreachableError:
                if time.monotonic() - since > _TAKEN_UP_SECONDS:
                    raise
                continue
            if (status.roll or "").startswith(digest(now)):
                return
            why = find(status.conditions, ConditionType.UP_TO_DATE)
            reason, seconds = why.reason if why else "", time.monotonic() - since
            if reason == Reason.PULLING_IMAGE:
                self._tell(f"pool {self.name}: {why.message if why else ''}")
                since = time.monotonic()
            elif seconds > (_SEEN_SECONDS if reason == Reason.IMAGE_PULL_FAILED else _TAKEN_UP_SECONDS):
                break
        if why is not None and why.status == "False":
            raise ClientError(f"pool {self.name} is not restarted: {why.reason}: {why.message}")
        raise DeadlineError(
            f"the operator has not begun to restart pool {self.name} within {_TAKEN_UP_SECONDS} s: check that it runs: "
            f"kubectl get pods -n workergroups-system"
        )

    def _present_status(self) -> ResourcePoolStatus:
        return pool_status(names.find(self.cluster, f"{names.POOL}/{self.name}"))

    @property
    def processes(self) -> Processes:
        """All processes of the pool's Ray cluster: what they do, and what they printed last."""
        return Processes.of(self.cluster, self.target)

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
