"""Whether the agent's report on a pool counts."""

from collections.abc import Mapping

from workergroups_api.report import PoolReport
from workergroups_api.resource_pool import ResourcePool
from workergroups_api.vouching import doubt
from workergroups_operator.policy.agent_liveness import AgentLiveness


def believed_report(pool: ResourcePool, agent: AgentLiveness, doubts: Mapping[str, str]) -> PoolReport:
    """Return the agent's report on the pool in the present Ray session; an empty one if there is none."""
    report = pool.status.reservation
    if report is None or not agent.is_believed or doubt(pool.uid, doubts) is not None:
        return PoolReport()
    return report if report.session == agent.session else PoolReport()
