"""When to restart a cluster whose token is no longer the Secret's: at once, and after growing pauses if it recurs.

The Secret may be changed again and again, or the annotation of each new RayCluster. The count is on the agent's
Lease, since a restart deletes the RayCluster.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from workergroups_api import names
from workergroups_api.bounded_text import MAX_TERM
from workergroups_api.manifest import LEASE, annotations_of
from workergroups_api.retries import Retries
from workergroups_common.text import plain
from workergroups_operator.observed import Observed
from workergroups_operator.policy.agent_liveness import AgentLiveness
from workergroups_operator.policy.retry import after_failure, begun, is_due, is_exhausted
from workergroups_operator.policy.token import present_authority_key, present_token, token_digest

NONE = Retries()


@dataclass(frozen=True)
class ClusterRestart:
    """Whether the RayCluster must be restarted, which is to delete and recreate it."""

    # Why it must be restarted; None if it need not be.
    why: str | None = None
    # Whether to restart it now, and how often it was restarted in a row.
    is_due: bool = False
    retries: Retries = NONE
    # Why it was restarted the last time, until the agent is connected to the new one.
    last: str | None = None


def cluster_restart(observed: Observed, agent: AgentLiveness, *, is_off: bool) -> ClusterRestart:
    """Return what to do; a cluster that is off needs no restart."""
    if is_off:
        return next_restart(observed, None, is_over=True)
    found = next_restart(observed, why_restart(observed), is_over=agent.is_believed)
    return replace(found, last=_last(observed, agent))


def why_restart(observed: Observed) -> str | None:
    """Return why the cluster must be restarted; None if it need not be."""
    if observed.ray_cluster is None:
        return None
    started_with = annotations_of(observed.ray_cluster).get(names.TOKEN_ANNOTATION)
    token = present_token(observed)
    authority_key = present_authority_key(observed) if observed.uses_tls else None
    if started_with is None or (token is not None and token_digest(token, authority_key) == started_with):
        return None
    name = names.token_secret_name(observed.key.name)
    return f"Secret {name} with Ray's token was {'deleted' if token is None else 'changed'}"


def next_restart(observed: Observed, why: str | None, *, is_over: bool) -> ClusterRestart:
    """Return what to do about a reason `why` to restart the cluster.

    `is_over` is whether the last restart is: the agent is connected, or the cluster needs no Ray any more.
    """
    before = _recorded(observed)
    if why is None:
        return ClusterRestart(retries=NONE if is_over else before)
    if "deletionTimestamp" in (observed.ray_cluster or {"metadata": {}})["metadata"]:
        return ClusterRestart(why, retries=before)
    is_counted = before.next is not None or is_exhausted(before)
    retries = before if is_counted else after_failure(before, observed.at)
    if is_due(retries, observed.at):
        return ClusterRestart(why, is_due=True, retries=begun(retries))
    return ClusterRestart(why, retries=retries)


def _last(observed: Observed, agent: AgentLiveness) -> str | None:
    if agent.is_believed:
        return None
    why = _annotations_of_lease(observed).get(names.RESTART_ANNOTATION)
    return None if why is None else plain(str(why), MAX_TERM)


def _recorded(observed: Observed) -> Retries:
    """Read the count from the Lease; a value that cannot be read counts as none."""
    try:
        return Retries.model_validate_json(_annotations_of_lease(observed)[names.RESTARTS_ANNOTATION])
    except (KeyError, ValueError):
        return NONE


def _annotations_of_lease(observed: Observed) -> Mapping[str, Any]:
    return annotations_of(observed.child(LEASE, names.agent_name(observed.key.name)))
