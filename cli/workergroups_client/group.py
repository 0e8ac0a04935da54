"""A group, by its name: its status, its ranks, what they print and what they do."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

from workergroups_api.manifest import WORKER_GROUP
from workergroups_api.names import RESTARTED_AT_ANNOTATION

from . import logs, names
from .cluster import Cluster
from .errors import DeadlineError, NotFoundError
from .on_head import ask_library
from .on_ray import OnRay
from .pauses import Pause, pauses_of
from .previous import DeadRank, dead_ranks
from .ranks import Rank, choose, ranks_of
from .tunnel import Tunnel
from .waiting import Tell, look_again, silently

_TAKEN_UP_SECONDS = 30
_RAYS_MARKS = (b":job_id:", b":actor_name:", b":task_name:")
"""Lines by which Ray tells whose output follows."""


class Group(OnRay):
    """A WorkerGroup that exists.

    Args:
        name: Its name.
        cluster: Where; by default the kubeconfig's current context and its namespace.
        tell: Told what is waited for.

    Raises:
        NotFoundError: There is none; says which there are.
    """

    def __init__(self, name: str, cluster: Cluster | None = None, tell: Tell = silently) -> None:
        cluster = cluster or Cluster()
        super().__init__(cluster, names.find(cluster, name, names.GROUP), tell)

    def ranks(self) -> list[Rank]:
        """Its ranks, with their processes."""
        return ranks_of(self.ray.api, self.target)

    def logs(self, ranks: str | None = None, *, follow: bool = False) -> Iterator[tuple[int, bytes]]:
        """Lines that ranks have printed, each with its rank.

        Args:
            ranks: Such as ``0-3,7``; all by default.
            follow: Go on with what they print, without an end.
        """
        files = {
            str(rank.rank): [logs.LogFile.of_actor(rank.actor_id, suffix) for suffix in ("out", "err")]
            for rank in choose(self.ranks(), ranks)
        }
        for label, line in logs.read(self.ray.api, files, follow=follow):
            if not line.startswith(_RAYS_MARKS):
                yield int(label), line

    def previous_logs(self, ranks: str | None = None) -> list[DeadRank]:
        """What ranks that died printed last, also when their pods are gone: of the latest incarnation that lost any.

        Args:
            ranks: Such as ``0-3,7``: the latest incarnation that lost one of these; all by default.

        Raises:
            NotFoundError: None has died since the agent listens; says since when that is.
        """
        return dead_ranks(self.cluster, self.target, ranks)

    def stacks(self) -> dict[int, str]:
        """What each rank does now: the Python stacks of its threads, also while it hangs."""
        return {int(rank): stack for rank, stack in self._ask("stacks").items()}

    def calls(self) -> list[dict[str, Any]]:
        """The calls that ranks have not finished: rank, method, state, seconds, and the Ray job that made them."""
        return list(self._ask("calls"))

    def pauses(self) -> list[Pause]:
        """Its ranks that are paused for a debugger, or have one."""
        return pauses_of(names.find(self.cluster, f"{names.GROUP}/{self.name}"))

    def tunnel(self, pause: Pause, *, local_port: int = 0) -> Tunnel:
        """A port of this machine that leads to debugpy in a paused rank.

        Args:
            pause: One of ``pauses()``.
            local_port: Of this machine; 0 for a free one.

        Raises:
            NotFoundError: debugpy does not listen there, or the pod is gone.
        """
        pod = pause.pod
        if pause.port is None:
            raise NotFoundError(f"debugpy does not listen in rank {pause.rank}: workergroups logs {self.name} says why")
        if pod is None:
            raise NotFoundError(f"the pod of rank {pause.rank} is gone")
        return Tunnel(self.cluster, lambda: pod, pause.port, local_port)

    def restart(self) -> int:
        """Have its ranks made anew, in their pods; the number of the new incarnation, which is not ready yet.

        Raises:
            DeadlineError: The operator has not taken it up.
        """
        before = self.status.incarnation or 0
        now = datetime.now(timezone.utc).isoformat()
        self.cluster.annotate(WORKER_GROUP, self.name, RESTARTED_AT_ANNOTATION, now)
        for _ in look_again(_TAKEN_UP_SECONDS):
            incarnation = self.status.incarnation or 0
            if incarnation > before:
                return incarnation
        raise DeadlineError(
            f"group {self.name}: the operator has not begun another incarnation within {_TAKEN_UP_SECONDS} s: is it "
            f"installed, and does it run? kubectl get pods -n workergroups-system"
        )

    def _ask(self, question: str) -> Any:
        """The library's own answer."""
        return ask_library(self.cluster, self.target, "rank_activity", question, self.name, what=question)
