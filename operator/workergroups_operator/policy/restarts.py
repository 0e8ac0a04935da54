"""When to restart a cluster whose token is no longer the Secret's: at once, and after growing pauses if it recurs.

The Secret may be changed again and again, or the annotation of each new RayCluster. The count is on the agent's
Lease, since a restart deletes the RayCluster.
"""

from dataclasses import dataclass

from workergroups_api.manifest import LEASE
from workergroups_api.names import RESTARTS_ANNOTATION, agent_name
from workergroups_api.retries import Retries
from workergroups_operator.observed import Observed
from workergroups_operator.policy.retry import after_failure, begun, is_due, is_exhausted

NONE = Retries()


@dataclass(frozen=True)
class Restarts:
    """How often the cluster was restarted in a row, and whether it must be restarted now."""

    retries: Retries = NONE
    is_due: bool = False


def restarts(observed: Observed, why: str | None, *, is_over: bool) -> Restarts:
    """Return what to do about a reason `why` to restart the cluster.

    `is_over` is whether the last restart is: the agent is connected, or the cluster needs no Ray any more.
    """
    before = _recorded(observed)
    if why is None:
        return Restarts(Retries() if is_over else before)
    if "deletionTimestamp" in (observed.ray_cluster or {"metadata": {}})["metadata"]:
        return Restarts(before)
    is_counted = before.next is not None or is_exhausted(before)
    retries = before if is_counted else after_failure(before, observed.at)
    return Restarts(begun(retries), is_due=True) if is_due(retries, observed.at) else Restarts(retries)


def _recorded(observed: Observed) -> Retries:
    """Read the count from the Lease; a value that cannot be read counts as none."""
    lease = observed.child(LEASE, agent_name(observed.key.name)) or {"metadata": {}}
    try:
        return Retries.model_validate_json(lease["metadata"].get("annotations", {})[RESTARTS_ANNOTATION])
    except (KeyError, ValueError):
        return Retries()
