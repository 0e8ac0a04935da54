"""Ranks that have told why they end: Ray only knows that their processes are gone."""

from dataclasses import replace

from workergroups.announcements import told_ends
from workergroups.ray_private.death import Death
from workergroups.ray_private.gcs import Gcs
from workergroups_agent.observer.memory_kills import is_silent
from workergroups_agent.ray_state import RayState
from workergroups_api.vocabulary import RankEnd


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
