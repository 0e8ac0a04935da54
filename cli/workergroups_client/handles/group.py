"""A group by its name: its status, its ranks, their output, stacks and calls."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timezone
from typing import Any

from workergroups_api.manifest import WORKER_GROUP
from workergroups_api.names import RESTARTED_AT_ANNOTATION
from workergroups_api.vocabulary import SUSPENDED, ConditionType

from ..api_server.cluster import Cluster
from ..api_server.tunnel import Tunnel
from ..errors import ClientError, DeadlineError, NotFoundError, UnreachableError
from ..objects import names
from ..pods import logs
from ..pods.head_programs import ask_library
from ..pods.pauses import PausedProcess, Pauses
from ..pods.previous import PreviousLog, previous_logs
from ..ray_cluster.activity import GroupActivity
from ..ray_cluster.handle import Handle
from ..ray_cluster.ranks import RankActor, choose, ranks_of
from ..waiting import Tell, look_again, silently

_TAKEN_UP_SECONDS = 30
_RAYS_MARKS = (b":job_id:", b":actor_name:", b":task_name:")
"""Lines with which Ray marks whose output follows."""


class Group(Handle):
    """A WorkerGroup that exists.

    Args:
        name: The name of the group.
        cluster: Its cluster; by default the kubeconfig's current context and namespace.
        tell: Called with progress messages.

    Raises:
        NotFoundError: There is no such group; the message names similar ones.
    """

    def __init__(self, name: str, cluster: Cluster | None = None, tell: Tell = silently) -> None:
        cluster = cluster or Cluster()
        super().__init__(cluster, names.find(cluster, name, names.GROUP), tell)

    def ranks(self) -> list[RankActor]:
        """Return the ranks with their actors."""
        return ranks_of(self.ray.api, self.target)

    def logs(
        self, ranks: str | None = None, *, follow: bool = False, tail: int | None = None, since: float | None = None
    ) -> Iterator[tuple[int, bytes]]:
        """Yield the lines that ranks have printed, each with its rank.

        Args:
            ranks: Ranks such as ``0-3,7``; by default all.
            follow: Continue with new lines, without an end.
            tail: How many lines to read from the end of each rank's output, and of its errors; by default 1000, or
                100,000 with ``since``.
            since: Leave out older lines, in seconds since the epoch, if they begin with a time as Python's logging
                writes it. A line without one belongs to the line before.
        """
        files = {
            str(rank.rank): [logs.LogFile.of_actor(rank.actor_id, suffix) for suffix in ("out", "err")]
            for rank in choose(self.ranks(), ranks)
        }
        for label, line in logs.read(self.ray.api, files, logs.LogPart(follow, tail, since)):
            if not line.startswith(_RAYS_MARKS):
                yield int(label), line

    def previous_logs(self, ranks: str | None = None) -> list[PreviousLog]:
        """Return what ranks that died printed last, in the latest incarnation that lost any; their pods may be gone.

        Args:
            ranks: Ranks such as ``0-3,7``, of the latest incarnation that lost one of them; by default all.

        Raises:
            NotFoundError: No rank has died since the agent began to listen; the message says when that was.
        """
        return previous_logs(self.cluster, self.target, ranks)

    def stacks(self) -> dict[int, str]:
        """Return the Python stacks of each rank's threads, even of a rank that hangs.

        Raises:
            NotFoundError: The group has no ranks, or not all; the message says why. So for ``calls`` and ``activity``.
        """
        return {int(rank): stack for rank, stack in self._ask("stacks").items()}

    def calls(self) -> list[dict[str, Any]]:
        """Return the calls that ranks have not finished: rank, method, state, seconds, and the caller's Ray job."""
        return list(self._ask("calls"))

    def activity(self) -> GroupActivity:
        """Return both at once, grouped: ranks that do the same are together, and the suspects come first."""
        found = self._ask("activity")
        if isinstance(found, list):  # of a cluster whose library is older
            found = {"calls": found, "stacks": {}}
        return GroupActivity(found["calls"], {int(rank): stack for rank, stack in found["stacks"].items()})

    def pauses(self) -> list[PausedProcess]:
        """Return the ranks that are paused for a debugger or have one."""
        return Pauses(self.cluster, self.target).now()

    def tunnel(self, pause: PausedProcess, *, local_port: int = 0) -> Tunnel:
        """Open a port of this machine that leads to debugpy in a paused rank.

        Args:
            pause: One of ``pauses()``.
            local_port: A port of this machine; 0 for a free one.

        Raises:
            NotFoundError: debugpy does not listen there, or the pod is gone.
        """
        return Pauses(self.cluster, self.target).tunnel(pause, local_port=local_port)

    def restart(self) -> int:
        """Recreate the ranks in their pods; return the number of the new incarnation, which is not ready yet.

        Raises:
            ClientError: The group is suspended, so that it has no ranks.
            DeadlineError: The operator has not begun a new incarnation in time.
        """
        if (reason := self.status.summary) is not None and reason.reason in SUSPENDED:
            raise ClientError(f"group {self.name} has no ranks: {reason.message}")
        before = self.status.incarnation or 0
        now = datetime.now(timezone.utc).isoformat()
        self.cluster.annotate(WORKER_GROUP, self.name, RESTARTED_AT_ANNOTATION, now)
        for _ in look_again(_TAKEN_UP_SECONDS):
            with suppress(UnreachableError):
                if (incarnation := self.status.incarnation or 0) > before:
                    return incarnation
        raise DeadlineError(
            f"the operator has not begun a new incarnation of group {self.name} within {_TAKEN_UP_SECONDS} s: check "
            f"that it runs: kubectl get pods -n workergroups-system"
        )

    def _ask(self, question: str) -> Any:
        """Ask the library on the head.

        Raises:
            NotFoundError: The group has no ranks, or not all; the message says why.
        """
        status = self.status
        created = status.condition(ConditionType.RANKS_CREATED)
        if created is not None and created.status == "False":
            why = status.summary or created
            raise NotFoundError(f"group {self.name} has no ranks to ask: {why.reason}: {why.message}")
        return ask_library(self.cluster, self.target, "rank_activity", question, self.name, what=question)
