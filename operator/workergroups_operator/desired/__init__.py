"""Step five: everything that should exist for a cluster, as full manifests. Pure."""

from workergroups_api.manifest import SERVICE_ACCOUNT, Manifest
from workergroups_api.names import agent_name
from workergroups_operator.decisions import Decisions
from workergroups_operator.desired import access, agent, group_env, lease, network_policy, plan, raycluster, token
from workergroups_operator.desired.ownership import guarded, owned
from workergroups_operator.desired.token import FreshSecrets
from workergroups_operator.observed import Observed
from workergroups_operator.settings import NetworkSettings
from workergroups_operator.templates import Templates


def desired(
    observed: Observed, templates: Templates, decisions: Decisions, network: NetworkSettings, fresh: FreshSecrets
) -> list[Manifest]:
    """Return the manifests in the order in which to apply them; none without a pool, or if there is an obstacle."""
    pools = observed.pools
    if not pools or decisions.obstacle:
        return []
    secret = token.secret(observed, fresh)
    planned = plan.cluster_plan(observed, decisions)
    environment = group_env.secret(observed, decisions, planned)
    manifests = [
        secret,
        *([environment] if environment else []),
        *access.access(observed.key, planned, observed.groups),
        lease.lease(observed, decisions),
        plan.config_map(planned),
        network_policy.network_policy(observed.key.name, network),
    ]
    if not decisions.restart.why:
        token_digest = token.digest_in(secret)
        if not decisions.is_off and not decisions.is_held:
            manifests.append(
                raycluster.ray_cluster(
                    observed,
                    templates,
                    decisions.refused_pods,
                    decisions.replicas,
                    token_digest,
                    suspended=decisions.suspended_pools.keys(),
                    rolls=decisions.rolls,
                )
            )
        account = observed.child(SERVICE_ACCOUNT, agent_name(observed.key.name))
        # Without a ServiceAccount there is no pod; if it is recreated, the API server rejects the old pod's token.
        if account:
            uid = str(account["metadata"]["uid"])
            off = decisions.is_off
            deployment = agent.deployment(
                observed.key, templates.images, pools[0], token_digest, uid, is_off=off, tls=observed.uses_tls
            )
            manifests.append(deployment)
    return [guarded(owned(manifest, observed), observed) for manifest in manifests]
