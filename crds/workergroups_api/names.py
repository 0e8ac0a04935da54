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

# Field managers of server-side apply: one per writer, so that neither takes the other's fields.
OPERATOR_FIELD_MANAGER = "workergroups-operator"
AGENT_FIELD_MANAGER = "workergroups-agent"

PLAN_KEY = "plan.json"
TOKEN_KEY = "auth_token"


def agent_name(cluster: str) -> str:
    """Name of the agent's Deployment, ServiceAccount, Role and RoleBinding."""
    return f"{cluster}-agent"


def plan_name(cluster: str) -> str:
    """Name of the ConfigMap that holds the cluster's plan."""
    return f"{cluster}-plan"


def token_secret_name(cluster: str) -> str:
    """Name of the Secret with Ray's authentication token."""
    return f"{cluster}-token"


def head_service(cluster: str, namespace: str) -> str:
    """Host name of the Ray head, as KubeRay names its service."""
    return f"{cluster}-head-svc.{namespace}.svc"


def node_group(pool: str, processes: int) -> str:
    """Name of the KubeRay worker group for a pool's nodes with `processes` processes each.

    Nodes of one size share a group, since KubeRay's autoscaler and Kueue count per group.
    """
    return f"{pool}-x{processes}"
