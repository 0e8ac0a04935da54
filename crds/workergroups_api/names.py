"""Names that more than one process must agree on."""

GROUP = "workergroups.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"

# Every object that the operator makes carries this label; its value is the RayCluster's name.
CLUSTER_LABEL = f"{GROUP}/cluster"
# Worker pods also say which pool they belong to.
POOL_LABEL = f"{GROUP}/pool"
# "head", "worker" or "agent".
COMPONENT_LABEL = f"{GROUP}/component"

# The containers in which Ray runs.
HEAD_CONTAINER = "ray-head"
WORKER_CONTAINER = "ray-worker"
# The agent's container that never runs a user's image.
REPORTER_CONTAINER = "reporter"

# Digest of the manifest that the operator applied last: an object with another one is applied anew.
MANIFEST_ANNOTATION = f"{GROUP}/manifest"
# On the pods of a pool: digest of the template that they were made from.
TEMPLATE_ANNOTATION = f"{GROUP}/template"
# On a WorkerGroup, by the user: each change of it makes the ranks anew, as `kubectl rollout restart` does with pods.
RESTARTED_AT_ANNOTATION = f"{GROUP}/restarted-at"
# On a RayCluster and the agent's pods: digest of the token that they were started with.
TOKEN_ANNOTATION = f"{GROUP}/token"
# On the agent's pods: uid of the ServiceAccount that they were started for.
SERVICE_ACCOUNT_ANNOTATION = f"{GROUP}/service-account"
# On a RayCluster: what it was started with, and the operator's defaults of that time.
HEAD_IMAGE_ANNOTATION = f"{GROUP}/head-image"
DEFAULT_IMAGE_ANNOTATION = f"{GROUP}/default-image"
LIBRARY_IMAGE_ANNOTATION = f"{GROUP}/library-image"
# On the agent's Lease, written by the operator: the head and the Ray session that were last seen to belong together.
HEAD_ANNOTATION = f"{GROUP}/head"
SESSION_ANNOTATION = f"{GROUP}/session"
# There too: why the cluster was started anew, until the agent is connected to the new one.
RESTART_ANNOTATION = f"{GROUP}/restarted-because"
# How often that was done in a row, and when it is done next, as JSON (`Retries`).
RESTARTS_ANNOTATION = f"{GROUP}/restarts"

# There too, written by the agent: the objects whose statuses it does not vouch for; see `vouching`.
DOUBTS_ANNOTATION = f"{GROUP}/not-vouched-for"

# Field managers of server-side apply: one per writer, so that neither takes the other's fields.
OPERATOR_FIELD_MANAGER = "workergroups-operator"
AGENT_FIELD_MANAGER = "workergroups-agent"

PLAN_KEY = "plan.json"
TOKEN_KEY = "auth_token"


def agent_name(cluster: str) -> str:
    """Name of the agent's Deployment, ServiceAccount, Role, RoleBinding and Lease."""
    return f"{cluster}-agent"


def plan_name(cluster: str) -> str:
    """Name of the ConfigMap that holds the cluster's plan."""
    return f"{cluster}-plan"


def token_secret_name(cluster: str) -> str:
    """Name of the Secret with Ray's authentication token: the cluster's own, where KubeRay's tools look for it."""
    return cluster


def head_service_name(cluster: str) -> str:
    """Name of the Ray head's service, as KubeRay gives it."""
    return f"{cluster}-head-svc"


def head_service(cluster: str, namespace: str) -> str:
    """Host name of the Ray head."""
    return f"{head_service_name(cluster)}.{namespace}.svc"


def node_group(pool: str, uid: str) -> str:
    """Name of the KubeRay worker group of a pool.

    The UID is part of it: a pool that was deleted and created again under its name never gets the old one's pods.
    """
    return f"{pool}-{uid[:8]}"
