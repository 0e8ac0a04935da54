"""Everything that the operator creates for a RayCluster: the one table of kinds and names."""

from collections.abc import Callable
from typing import NamedTuple

from workergroups_api import manifest as kinds
from workergroups_api.manifest import Kind
from workergroups_api.names import agent_name, group_env_name, network_policy_name, plan_name, token_secret_name


class Child(NamedTuple):
    """One object that the operator creates for a RayCluster."""

    kind: Kind
    # Returns the object's name, given the RayCluster's.
    name_of: Callable[[str], str]


# In the order in which the operator creates them.
CHILDREN = (
    Child(kinds.SECRET, token_secret_name),
    # Only if a group takes variables from Secrets or ConfigMaps.
    Child(kinds.SECRET, group_env_name),
    Child(kinds.SERVICE_ACCOUNT, agent_name),
    Child(kinds.ROLE, agent_name),
    Child(kinds.ROLE_BINDING, agent_name),
    Child(kinds.LEASE, agent_name),
    Child(kinds.CONFIG_MAP, plan_name),
    Child(kinds.NETWORK_POLICY, network_policy_name),
    Child(kinds.RAY_CLUSTER, lambda cluster: cluster),
    Child(kinds.DEPLOYMENT, agent_name),
)
CHILD_KINDS = tuple(dict.fromkeys(child.kind for child in CHILDREN))


def child_names(cluster: str) -> list[tuple[Kind, str]]:
    """Return kind and name of each object that the operator creates for the RayCluster `cluster`."""
    return [(child.kind, child.name_of(cluster)) for child in CHILDREN]
