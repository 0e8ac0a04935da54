"""Names that more than one process must agree on."""

GROUP = "workergroups.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"

# Every object that the operator creates has this label; its value is the RayCluster's name.
CLUSTER_LABEL = f"{GROUP}/cluster"
# On worker pods: the pool that they belong to.
POOL_LABEL = f"{GROUP}/pool"
# On every pod: what it is, a `vocabulary.Component`.
COMPONENT_LABEL = f"{GROUP}/component"

# Digest of the manifest that the operator applied last. If it differs, the operator applies the object again.
MANIFEST_ANNOTATION = f"{GROUP}/manifest"
# On Ray's pods: digest of the template that they were created from.
TEMPLATE_ANNOTATION = f"{GROUP}/template"
# On Ray's pods: digests of the fields of the spec that they were created from, as JSON.
MADE_FROM_ANNOTATION = f"{GROUP}/made-from"
# On Ray's pods: what `ray start` is given that a pod template has no field for, as JSON.
RAY_START_ANNOTATION = f"{GROUP}/ray-start"
# On the pods of a pool: name of the last restart before they were created; see the operator's `policy.roll`.
ROLL_ANNOTATION = f"{GROUP}/roll"
# On a RayCluster: UID of the head's pod that a restart must replace.
REPLACED_HEAD_ANNOTATION = f"{GROUP}/replaced-head"
# On a pool or a group, set by the user: each change recreates the pods of the pool, or the ranks of the group, as
# `kubectl rollout restart` recreates pods.
RESTARTED_AT_ANNOTATION = f"{GROUP}/restarted-at"
# On a ResourcePool, set by the user: each change wakes a pool that was suspended since it was idle.
WAKE_AT_ANNOTATION = f"{GROUP}/wake-at"
# On a RayCluster and the agent's pods: digest of the token that they were started with.
TOKEN_ANNOTATION = f"{GROUP}/token"
# On a RayCluster: whether it was started with TLS.
TLS_ANNOTATION = f"{GROUP}/tls"
# On the agent's pods: UID of the ServiceAccount that they were started for.
SERVICE_ACCOUNT_ANNOTATION = f"{GROUP}/service-account"
# On a RayCluster: the images that it was started with, the operator's defaults at that time.
HEAD_IMAGE_ANNOTATION = f"{GROUP}/head-image"
DEFAULT_IMAGE_ANNOTATION = f"{GROUP}/default-image"
LIBRARY_IMAGE_ANNOTATION = f"{GROUP}/library-image"
# On the agent's Lease, written by the operator: the head and its Ray session, as last observed.
HEAD_ANNOTATION = f"{GROUP}/head"
SESSION_ANNOTATION = f"{GROUP}/session"
# On the Lease, written by the operator: why the cluster was restarted, until the agent is connected to the new one.
RESTART_ANNOTATION = f"{GROUP}/restarted-because"
# On the Lease, written by the operator: restarts in a row, and the time of the next one, as JSON (`Retries`).
RESTARTS_ANNOTATION = f"{GROUP}/restarts"

# On the ConfigMap with the records of a RayCluster's jobs, written by the command line: the name of the RayCluster.
JOB_RECORDS_LABEL = f"{GROUP}/job-records"

# On the Lease, written by the agent: the objects whose statuses it does not vouch for; see `vouching`.
DOUBTS_ANNOTATION = f"{GROUP}/not-vouched-for"

# Field managers of server-side apply: one for each writer, so that neither takes over the other's fields.
OPERATOR_FIELD_MANAGER = "workergroups-operator"
AGENT_FIELD_MANAGER = "workergroups-agent"

PLAN_KEY = "plan.json"
TOKEN_KEY = "auth_token"
# In the same Secret: the key of the authority that signs the certificates of Ray's pods, as a hexadecimal number.
AUTHORITY_KEY = "certificate_authority_key"


def agent_name(cluster: str) -> str:
    """Return the name of the agent's Deployment, ServiceAccount, Role, RoleBinding and Lease."""
    return f"{cluster}-agent"


def plan_name(cluster: str) -> str:
    """Return the name of the ConfigMap that holds the cluster's plan."""
    return f"{cluster}-plan"


def job_records_name(cluster: str) -> str:
    """Return the name of the ConfigMap in which the command line keeps the records of the cluster's jobs."""
    return f"{cluster}-job-records"


def token_secret_name(cluster: str) -> str:
    """Return the name of the Secret with Ray's authentication token: the cluster's name, as KubeRay's tools expect."""
    return cluster


def group_env_name(cluster: str) -> str:
    """Return the name of the Secret with the variables that groups take from Secrets and ConfigMaps."""
    return f"{cluster}-group-env"


def network_policy_name(cluster: str) -> str:
    """Return the name of the NetworkPolicy for Ray's pods."""
    return f"{cluster}-pods"


def head_service_name(cluster: str) -> str:
    """Return the name that KubeRay gives to the Ray head's service."""
    return f"{cluster}-head-svc"


def head_service(cluster: str, namespace: str) -> str:
    """Return the host name of the Ray head."""
    return f"{head_service_name(cluster)}.{namespace}.svc"


def node_group(pool: str, uid: str) -> str:
    """Return the name of the KubeRay worker group of a pool.

    The UID is part of the name, so that a pool that was deleted and created again never gets the former pool's pods.
    """
    return f"{pool}-{uid[:8]}"
