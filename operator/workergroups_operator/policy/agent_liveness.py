"""Whether the agent's reports can be believed, and of which Ray session they have to be."""

from dataclasses import dataclass
from enum import Enum

from workergroups_operator.observed import AgentSign
from workergroups_operator.timings import Timings


class AgentState(Enum):
    """What the operator makes of the agent's signs."""

    STARTING = "it has not been connected to this Ray yet"
    CONNECTED = "it is connected"
    AWAY = "it was connected, and has been gone for a moment"
    LOST = "it was connected, and has been gone for too long to know"


@dataclass(frozen=True)
class AgentLiveness:
    """The agent's state, and the head and session that belong together as far as is known."""

    state: AgentState
    head: str | None = None
    session: str | None = None

    @property
    def is_believed(self) -> bool:
        """Whether reports of this session count."""
        return self.state in (AgentState.CONNECTED, AgentState.AWAY)


def agent_liveness(head: str | None, sign: AgentSign, timings: Timings) -> AgentLiveness:
    """Of the head that runs now, and what the agent shows.

    A head that started anew has another session. What an agent says of its session is up to four seconds old, so with
    another head it counts only that long after that one was first seen; with the first one at once. Which is the first,
    only an operator knows that saw the cluster begin: the Lease, which tells of earlier ones, may have been deleted.
    """
    known = sign.known
    if head is None:
        return AgentLiveness(AgentState.STARTING)
    if known is not None and known[0] == head and sign.session in (None, known[1]):
        return AgentLiveness(_presence(sign, timings), *known)
    if sign.session is None or sign.is_silent or sign.away_seconds:
        return AgentLiveness(AgentState.STARTING)
    if sign.is_of_first_head or (sign.seen_with_head_seconds or 0.0) >= timings.session_stale:
        return AgentLiveness(AgentState.CONNECTED, head, sign.session)
    return AgentLiveness(AgentState.STARTING)


def _presence(sign: AgentSign, timings: Timings) -> AgentState:
    if sign.is_silent or sign.away_seconds >= timings.agent_away:
        return AgentState.LOST
    return AgentState.AWAY if sign.away_seconds else AgentState.CONNECTED
