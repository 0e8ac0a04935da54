"""The agent's Lease. Only the agent writes its spec.

The operator's annotations record which head and session it saw together, and why it restarted the cluster.
"""

from workergroups_api.manifest import LEASE, Manifest, annotations_of
from workergroups_api.names import (
    HEAD_ANNOTATION,
    RESTART_ANNOTATION,
    RESTARTS_ANNOTATION,
    SESSION_ANNOTATION,
    agent_name,
)
from workergroups_operator.decisions import Decisions
from workergroups_operator.observed import Observed


def lease(observed: Observed, decisions: Decisions) -> Manifest:
    """Return the Lease with the present head and session, or with the last known ones if they are unknown."""
    name, agent = agent_name(observed.key.name), decisions.agent
    live = annotations_of(observed.child(LEASE, name))
    known = {key: live[key] for key in (HEAD_ANNOTATION, SESSION_ANNOTATION) if key in live}
    if agent.head and agent.session:
        known = {HEAD_ANNOTATION: agent.head, SESSION_ANNOTATION: agent.session}
    why = decisions.restart.why or decisions.restart.last
    if why:
        known[RESTART_ANNOTATION] = why
    if decisions.restart.retries.failures:
        known[RESTARTS_ANNOTATION] = decisions.restart.retries.model_dump_json(exclude_none=True)
    return LEASE.manifest({"name": name} | ({"annotations": known} if known else {}))
