"""Whether the agent's reports can be believed: it is connected, it has been away for a moment, or it is lost."""

from datetime import datetime, timedelta
from enum import Enum

from workergroups_api.kube import Manifest

# A deleted agent pod is back in about 15 s; until then what it said last still stands.
GRACE = timedelta(seconds=60)


class AgentLiveness(Enum):
    """What the operator makes of the agent's Deployment."""

    CONNECTED = "connected"
    AWAY = "away"
    LOST = "lost"


def agent_liveness(deployment: Manifest | None, now: datetime) -> AgentLiveness:
    """The Deployment is available when its pod is ready: when the agent is connected to Ray and has reported."""
    for condition in (deployment or {}).get("status", {}).get("conditions", ()):
        if condition["type"] == "Available":
            if condition["status"] == "True":
                return AgentLiveness.CONNECTED
            away_since = datetime.fromisoformat(condition["lastTransitionTime"])
            return AgentLiveness.AWAY if now - away_since < GRACE else AgentLiveness.LOST
    return AgentLiveness.AWAY
