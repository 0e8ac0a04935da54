"""Whether the agent's reports count.

Where others read a raw report, they look for what stays true of a past moment: that ranks were created, or which pods
were reserved.
"""

from workergroups_api.model import ApiObject
from workergroups_api.report import GroupReport, PoolReport
from workergroups_api.resource_pool import ResourcePool
from workergroups_api.vouching import doubt
from workergroups_api.worker_group import WorkerGroup
from workergroups_operator.observed import Observed
from workergroups_operator.policy.agent_liveness import AgentLiveness


def vouches(subject: ApiObject, observed: Observed, agent: AgentLiveness) -> bool:
    """Return whether the agent vouches for what it last reported of an object."""
    return agent.is_believed and doubt(subject.uid, observed.agent.doubts) is None


def pool_report(pool: ResourcePool, observed: Observed, agent: AgentLiveness) -> PoolReport:
    """Return the agent's report on the pool in the present Ray session; an empty one if there is none."""
    report = pool.status.reservation
    if report is None or report.session != agent.session or not vouches(pool, observed, agent):
        return PoolReport()
    return report


def group_report(group: WorkerGroup, number: int, observed: Observed, agent: AgentLiveness) -> GroupReport | None:
    """Return the agent's report on an incarnation in the present Ray session; None if there is none."""
    report = group.status.ranks
    if report is None or (report.session, report.incarnation) != (agent.session, number):
        return None
    return report if vouches(group, observed, agent) else None
