"""Step two: everything that is to exist for a cluster, as full manifests. Pure: no clock, no I/O."""

from collections.abc import Mapping

from workergroups_api.kube import Manifest
from workergroups_operator.desired import agent, plan, raycluster, token
from workergroups_operator.desired.ownership import owned
from workergroups_operator.observe import Observed
from workergroups_operator.policy.seating import Seating
from workergroups_operator.policy.sharing import Sharing
from workergroups_operator.settings import Settings


def desired(
    observed: Observed, sharing: Sharing, seating: Mapping[str, Seating], settings: Settings, fresh_token: str
) -> list[Manifest]:
    """The manifests in the order in which to apply them; none if the cluster has no pool."""
    pools = sharing.accepted
    if not pools:
        return []
    manifests = [
        token.secret(observed, fresh_token),
        plan.config_map(plan.cluster_plan(observed.key, pools, observed.groups, seating)),
        *agent.access(observed.key, pools, observed.groups),
        raycluster.ray_cluster(observed, pools, settings),
        agent.deployment(observed.key, pools, settings),
    ]
    return [owned(manifest, observed.key, pools) for manifest in manifests]
