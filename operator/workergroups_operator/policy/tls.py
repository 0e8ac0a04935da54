"""Which pools may join a cluster: a pool that asks for TLS never gets a Ray without it."""

from workergroups_api.conditions import Explanation
from workergroups_api.vocabulary import Reason
from workergroups_operator.observed import Observed, node_group_of


def without_tls(observed: Observed) -> dict[str, Explanation]:
    """Explain which pools ask for TLS on a cluster that began without it, by the name of their node group."""
    if observed.uses_tls:
        return {}
    return {
        node_group_of(pool): Explanation(
            Reason.TLS_CONFLICT,
            f"spec.tls is true, and RayCluster {pool.cluster} began without TLS: give the pool another "
            "spec.clusterName, or delete the other pools of this one first",
        )
        for pool in observed.pools
        if pool.spec.tls
    }
