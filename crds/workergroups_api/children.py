"""Everything that the operator creates for a RayCluster: the one table of kinds and names."""

from collections.abc import Callable

from workergroups_api import manifest as kinds
from workergroups_api.manifest import Kind
from workergroups_api.names import agent_name, group_env_name, network_policy_name, plan_name, token_secret_name

# In the order in which the operator creates them, each with what returns its name, given the RayCluster's.
CHILDREN: tuple[tuple[Kind, Callable[[str], str]], ...] = (
    (kinds.SECRET, token_secret_name),
    # Only if a group takes variables from Secrets or ConfigMaps.
    (kinds.SECRET, group_env_name),
    (kinds.SERVICE_ACCOUNT, agent_name),
    (kinds.ROLE, agent_name),
    (kinds.ROLE_BINDING, agent_name),
    (kinds.LEASE, agent_name),
    (kinds.CONFIG_MAP, plan_name),
    (kinds.NETWORK_POLICY, network_policy_name),
    (kinds.RAY_CLUSTER, lambda cluster: cluster),
    (kinds.DEPLOYMENT, agent_name),
)
CHILD_KINDS = tuple(dict.fromkeys(kind for kind, _ in CHILDREN))


def child_names(cluster: str) -> list[tuple[Kind, str]]:
    """Return kind and name of each object that the operator creates for the RayCluster `cluster`."""
    return [(kind, name_of(cluster)) for kind, name_of in CHILDREN]
