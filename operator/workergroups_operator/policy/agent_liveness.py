"""Whether the agent's reports count, and of which Ray session they must be.

A head that is gone may come back with all it knew, so that its nodes and ranks only wait for it: its GCS keeps its
state on a volume. One in the head's pod outlives the head's container; a claim outlives the pod.
"""

import re
from dataclasses import dataclass
from enum import Enum

from workergroups_api.vocabulary import Component
from workergroups_operator.observed import AgentHeartbeat, Observed, entries, is_running
from workergroups_operator.policy.found_versions import found_versions
from workergroups_operator.policy.queueing import is_suspended
from workergroups_operator.timings import Timings

GCS_STORAGE = "workergroups-gcs-storage"
"""The volume of the head on which the GCS keeps its state."""
# Since then, Ray can continue a session with a kept state.
_RETURNS_SINCE = (2, 60)
_NUMBERS = re.compile("[0-9]+")


class AgentState(Enum):
    """What the operator concludes from the agent's heartbeats."""

    STARTING = "it has not been connected to this Ray yet"
    CONNECTED = "it is connected"
    AWAY = "it was connected, and has been gone for a moment"
    LOST = "it was connected, and has been gone for too long to know"
    HEAD_AWAY = "it was connected to a head that starts again, and may still have all its nodes and ranks"


@dataclass(frozen=True)
class AgentLiveness:
    """The agent's state, and the head and its Ray session as far as they are known."""

    state: AgentState
    head: str | None = None
    session: str | None = None

    @property
    def is_believed(self) -> bool:
        """Return whether reports of this session count."""
        return self.state in (AgentState.CONNECTED, AgentState.AWAY)


def agent_liveness(
    head: str | None, heartbeat: AgentHeartbeat, timings: Timings, *, head_may_return: bool = False
) -> AgentLiveness:
    """Conclude from the head that runs now and from the agent's heartbeats.

    `head_may_return` is whether the head that was known last may continue its Ray session.

    A head that restarted has another session. The session that an agent reports is up to four seconds old, so it counts
    only that long after the operator first saw the present head. If it is the cluster's first head, the session counts
    at once. Only an operator that saw the cluster begin knows that: the Lease, which records earlier heads, may have
    been deleted.
    """
    known = heartbeat.known
    is_away = head_may_return and known is not None and known[0] != head
    not_yet = AgentLiveness(AgentState.HEAD_AWAY if is_away else AgentState.STARTING)
    if head is None:
        return not_yet
    if known is not None and known[0] == head and heartbeat.session in (None, known[1]):
        return AgentLiveness(_presence(heartbeat, timings), *known)
    if heartbeat.session is None or heartbeat.is_silent or heartbeat.away_seconds:
        return not_yet
    if heartbeat.is_of_first_head or (heartbeat.seen_with_head_seconds or 0.0) >= timings.session_stale:
        return AgentLiveness(AgentState.CONNECTED, head, heartbeat.session)
    return not_yet


def _presence(heartbeat: AgentHeartbeat, timings: Timings) -> AgentState:
    if heartbeat.is_silent or heartbeat.away_seconds >= timings.agent_away:
        return AgentState.LOST
    return AgentState.AWAY if heartbeat.away_seconds else AgentState.CONNECTED


def head_may_return(observed: Observed) -> bool:
    """Return whether the next start of the head may continue the Ray session that the agent was last connected to."""
    known, heads = observed.agent.known, observed.pods_of(Component.HEAD)
    if known is None or observed.ray_cluster is None or is_suspended(observed.ray_cluster):
        return False
    found = found_versions(heads)
    if found is not None and tuple(int(number) for number in _NUMBERS.findall(found.ray)[:2]) < _RETURNS_SINCE:
        return False
    pod, session = known[0].partition("/")[0], known[1]
    if session not in {pool.status.reservation.session for pool in observed.pools if pool.status.reservation}:
        return False  # it was the session of an earlier cluster of this name
    is_same_pod = any(each["metadata"]["uid"] == pod for each in heads if is_running(each))
    return is_same_pod or _has_claim(observed)


def _has_claim(observed: Observed) -> bool:
    """Return whether the head that was lost kept its state on a claim; the spec may have changed since."""
    volumes = entries(observed.live_head_template, "volumes")
    return any(each.get("name") == GCS_STORAGE and "persistentVolumeClaim" in each for each in volumes)
