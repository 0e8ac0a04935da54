"""The agent's Lease: its spec is the agent's alone; the operator notes on it which head and session belong together."""

from workergroups_api.manifest import LEASE, Manifest
from workergroups_api.names import HEAD_ANNOTATION, SESSION_ANNOTATION, agent_name
from workergroups_operator.observed import Observed
from workergroups_operator.policy.agent_liveness import AgentLiveness


def lease(observed: Observed, agent: AgentLiveness) -> Manifest:
    """With what is known now of head and session; while nothing is, with what was known."""
    name = agent_name(observed.key.name)
    live = (observed.child(LEASE, name) or {"metadata": {}})["metadata"].get("annotations", {})
    known = {key: live[key] for key in (HEAD_ANNOTATION, SESSION_ANNOTATION) if key in live}
    if agent.head and agent.session:
        known = {HEAD_ANNOTATION: agent.head, SESSION_ANNOTATION: agent.session}
    return {
        "apiVersion": LEASE.api_version,
        "kind": LEASE.kind,
        "metadata": {"name": name} | ({"annotations": known} if known else {}),
    }
