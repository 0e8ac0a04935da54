"""A pool's conditions: ClusterReady, NodesReady, BundlesReserved, and Ready that sums them up."""

from workergroups_api.conditions import Finding, find
from workergroups_api.report import PoolReport
from workergroups_api.resource_pool import ResourcePool
from workergroups_operator.policy.agent_liveness import AgentLiveness
from workergroups_operator.policy.pod_trouble import first_trouble
from workergroups_operator.status.situation import Conclusion, Situation, conclude


def pool_conditions(pool: ResourcePool, situation: Situation) -> Conclusion:
    """What is true of the pool."""
    chain = (_cluster_ready(pool, situation), _nodes_ready(pool, situation), _bundles_reserved(pool, situation))
    return conclude(pool, pool.status.conditions, chain, pool.spec.reservation_deadline_seconds, situation.now)


def _cluster_ready(pool: ResourcePool, situation: Situation) -> Finding:
    """The agent is connected to the Ray head. KubeRay's own `ready` is not asked: it never turns back."""

    def no(reason: str, message: str) -> Finding:
        return Finding(type="ClusterReady", status="False", reason=reason, message=message)

    observed = situation.observed
    if pool.name in situation.sharing.refused:
        return no("RayVersionConflict", situation.sharing.refused[pool.name])
    if situation.failure:
        return no(situation.failure.reason, situation.failure.message)
    heads = observed.pods_of("head")
    trouble = first_trouble(heads)
    if trouble:
        return no(trouble.reason, f"head: {trouble.message}")
    if not any(pod.get("status", {}).get("phase") == "Running" for pod in heads):
        return no(
            "HeadStarting", "waiting for the Ray head's pod to run" if heads else "waiting for KubeRay to make the head"
        )
    if situation.agent is AgentLiveness.CONNECTED:
        return Finding(
            type="ClusterReady", status="True", reason="AgentConnected", message="Ray's head answers the agent"
        )
    before = find(pool.status.conditions, "ClusterReady")
    if before is None or before.status == "False" or situation.agent is AgentLiveness.OUTDATED:
        trouble = first_trouble(observed.pods_of("agent"))
        if trouble:
            return no(trouble.reason, f"agent: {trouble.message}")
        return no("AgentStarting", "waiting for the agent to join the Ray cluster")
    if situation.agent is AgentLiveness.AWAY and before.status == "True":
        return Finding(type="ClusterReady", status="True", reason=before.reason, message=before.message)
    return Finding(
        type="ClusterReady",
        status="Unknown",
        reason="AgentLost",
        message="the agent's pod is not ready, so nobody knows; ranks that ran go on",
    )


def _nodes_ready(pool: ResourcePool, situation: Situation) -> Finding:
    report = pool.status.reservation or PoolReport()
    total = len(pool.spec.processes_per_node)
    joined = report.joined_nodes
    count = f"{joined} of {total} nodes joined Ray"
    if joined == total:
        return Finding(type="NodesReady", status="True", reason="NodesJoined", message=count)
    pods = situation.observed.pods_of("worker", pool.name)
    trouble = first_trouble(pods)
    if trouble:
        return Finding(type="NodesReady", status="False", reason=trouble.reason, message=f"{count}: {trouble.message}")
    return Finding(
        type="NodesReady", status="False", reason="NodesStarting", message=f"{count}; {len(pods)} of {total} pods made"
    )


def _bundles_reserved(pool: ResourcePool, situation: Situation) -> Finding:
    report = pool.status.reservation or PoolReport()
    count = f"{report.reserved_bundles} of {pool.world_size} bundles reserved"
    if report.observed_generation == pool.generation and report.reserved_bundles == pool.world_size:
        return Finding(type="BundlesReserved", status="True", reason="Reserved", message=count)
    if report.message:
        count = f"{count}: {report.message}"
    return Finding(type="BundlesReserved", status="False", reason="Reserving", message=count)
