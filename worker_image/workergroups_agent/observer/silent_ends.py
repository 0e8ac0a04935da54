"""Why ranks ended of which Ray only knows that their processes are gone.

Some have told it before. Others were probably ended by the kernel for lack of memory, as their nodes report. Whether
that explains a death depends only on what the GCS holds, so a restarted observer comes to the same conclusion.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from workergroups.announcements import told_ends
from workergroups.node import memory_kills
from workergroups.ray_private.death import Death
from workergroups.ray_private.death_cause import SILENT_END
from workergroups.ray_private.gcs import Gcs
from workergroups_agent.ray_state import RankActor, RayState
from workergroups_api.vocabulary import RankEnd

# After this, nothing that explains a death is still on its way from the node.
SETTLED_SECONDS = 5.0
EXPLANATION = Death(RankEnd.OUT_OF_MEMORY, memory_kills.MESSAGE, "")


@dataclass
class _Known:
    """What the observer knows of the end of a rank that Ray cannot explain."""

    # By this process's own clock.
    first_seen: float
    is_explained: bool = False


class ToldEnds:
    """Reads what dead ranks have told. It asks the GCS once after each death."""

    def __init__(self, gcs: Gcs) -> None:
        self._gcs = gcs
        # By actor id; empty if the rank told nothing.
        self._known: dict[str, str] = {}

    def explained(self, state: RayState) -> RayState:
        """Return the state, with what these ranks told as the message of their deaths."""
        silent = {rank.actor_id for rank in state.ranks if is_silent(rank)}
        if news := silent - self._known.keys():
            found = self._gcs.get_many(told_ends.KV_NAMESPACE, news)
            self._known |= {actor_id: told_ends.read(found.get(actor_id)) for actor_id in news}
            self._forget_but({rank.actor_id for rank in state.ranks})
        told = {actor_id: self._known[actor_id] for actor_id in silent if self._known[actor_id]}
        if not told:
            return state
        ranks = (
            replace(rank, death=Death(RankEnd.PROCESS_DIED, told[rank.actor_id], "")) if rank.actor_id in told else rank
            for rank in state.ranks
        )
        return replace(state, ranks=tuple(ranks))

    def _forget_but(self, actor_ids: set[str]) -> None:
        """Remove what actors told that Ray has forgotten."""
        self._known = {actor_id: told for actor_id, told in self._known.items() if actor_id in actor_ids}
        for key in self._gcs.keys(told_ends.KV_NAMESPACE):
            if key not in actor_ids:
                self._gcs.delete(told_ends.KV_NAMESPACE, key)


class MemoryKills:
    """Finds the ranks that died when the kernel ended a process of their pod. It asks the GCS only after a death."""

    def __init__(self, gcs: Gcs, clock: Callable[[], float] = time.monotonic) -> None:
        self._gcs = gcs
        self._clock = clock
        # By actor id.
        self._known: dict[str, _Known] = {}

    def explained(self, state: RayState) -> RayState:
        """Return the state, with OutOfMemory as the end of these ranks."""
        silent = {rank.actor_id: rank for rank in state.ranks if is_silent(rank)}
        now = self._clock()
        self._known = {actor_id: self._known.get(actor_id, _Known(now)) for actor_id in silent}
        self._judge(silent, state.pods, now)
        found = {actor_id for actor_id, known in self._known.items() if known.is_explained}
        if not found:
            return state
        ranks = (replace(rank, death=EXPLANATION) if rank.actor_id in found else rank for rank in state.ranks)
        return replace(state, ranks=tuple(ranks))

    def _judge(self, silent: Mapping[str, RankActor], pods: Mapping[str, str], now: float) -> None:
        """Look for an explanation of those that died lately and have none yet."""
        lately = {
            actor_id: pods[silent[actor_id].node_id]
            for actor_id, known in self._known.items()
            if not known.is_explained and now - known.first_seen < SETTLED_SECONDS and silent[actor_id].node_id in pods
        }
        if not lately:
            return
        records = self._gcs.get_many(memory_kills.KV_NAMESPACE, set(lately.values()))
        for actor_id, pod in lately.items():
            if times := memory_kills.read(records.get(pod)):
                ended = self._ended(silent[actor_id])
                self._known[actor_id].is_explained = ended is not None and memory_kills.explain(times, ended)

    def _ended(self, rank: RankActor) -> float | None:
        try:
            return self._gcs.worker_end(rank.worker_id)
        except ValueError:
            return None


def is_silent(rank: RankActor) -> bool:
    """Return whether the rank's process ended without a word, so that a kill for lack of memory may be the reason."""
    return rank.death is not None and rank.death.message == SILENT_END and bool(rank.worker_id)
