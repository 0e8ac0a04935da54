"""Whether the agent's reports can be believed: it is connected, it has been away for a moment, or it is lost."""

from collections.abc import Iterable
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
    # It was connected to a head that is no more: what it said is of another Ray.
    OUTDATED = "outdated"


def agent_liveness(deployment: Manifest | None, heads: Iterable[Manifest], now: datetime) -> AgentLiveness:
    """The Deployment is available when its pod is ready: when the agent is connected to Ray and has reported."""
    for condition in (deployment or {}).get("status", {}).get("conditions", ()):
        if condition["type"] == "Available":
            since = datetime.fromisoformat(condition["lastTransitionTime"])
            if any(started > since for started in _starts(heads)):
                return AgentLiveness.OUTDATED
            if condition["status"] == "True":
                return AgentLiveness.CONNECTED
            return AgentLiveness.AWAY if now - since < GRACE else AgentLiveness.LOST
    return AgentLiveness.AWAY


def _starts(heads: Iterable[Manifest]) -> Iterable[datetime]:
    """When the heads' processes started: kubelet restarts a container in its pod, and Ray begins from nothing."""
    for pod in heads:
        for container in pod.get("status", {}).get("containerStatuses", ()):
            running = container.get("state", {}).get("running")
            if running:
                yield datetime.fromisoformat(running["startedAt"])
