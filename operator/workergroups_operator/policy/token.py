"""Whether the running Ray still knows the token that is in the Secret. Its pods read it once, when they start.

The operator reports why it restarts a cluster until the agent is connected to the new RayCluster.
"""

import base64

from workergroups_api import names
from workergroups_api.bounded_text import MAX_TERM
from workergroups_api.launch import digest
from workergroups_api.manifest import LEASE, SECRET
from workergroups_common.text import plain
from workergroups_operator.observed import Observed
from workergroups_operator.policy.agent_liveness import AgentLiveness


def present_token(observed: Observed) -> str | None:
    """Return the token in the Secret, encoded as it is; None if there is none."""
    secret = observed.child(SECRET, names.token_secret_name(observed.key.name)) or {}
    token = (secret.get("data") or {}).get(names.TOKEN_KEY)
    return str(token) if token else None


def encoded(token: str) -> str:
    """Return a token as a Secret holds it."""
    return base64.b64encode(token.encode()).decode()


def token_digest(token: str) -> str:
    """Return a short name for a token that does not reveal it."""
    return digest(["token", token])


def restart(observed: Observed) -> str | None:
    """Return why the cluster must be restarted; None if it need not be."""
    if observed.ray_cluster is None:
        return None
    started_with = observed.ray_cluster["metadata"].get("annotations", {}).get(names.TOKEN_ANNOTATION)
    token = present_token(observed)
    if started_with is None or (token is not None and token_digest(token) == started_with):
        return None
    name = names.token_secret_name(observed.key.name)
    return f"Secret {name} with Ray's token was {'deleted' if token is None else 'changed'}"


def restarted(observed: Observed, agent: AgentLiveness) -> str | None:
    """Return why the cluster was restarted; None once the agent is connected to it."""
    if agent.is_believed:
        return None
    lease = observed.child(LEASE, names.agent_name(observed.key.name)) or {"metadata": {}}
    why = lease["metadata"].get("annotations", {}).get(names.RESTART_ANNOTATION)
    return None if why is None else plain(str(why), MAX_TERM)
