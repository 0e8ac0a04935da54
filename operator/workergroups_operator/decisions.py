"""Step four: all that is decided about one cluster, as one value. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from workergroups_api import launch
from workergroups_api.conditions import Explanation
from workergroups_api.plan import PlannedBundles
from workergroups_api.retries import Retries
from workergroups_api.worker_group import WorkerGroup
from workergroups_operator.observed import Observed
from workergroups_operator.policy.agent_liveness import AgentLiveness, agent_liveness
from workergroups_operator.policy.bundles import Assignment, assign_bundles
from workergroups_operator.policy.incarnation import GroupIncarnation, latest, launch_outcome, next_incarnation
from workergroups_operator.policy.lifetime import obstacle
from workergroups_operator.policy.plan_size import with_room
from workergroups_operator.policy.restarts import Restarts, restarts
from workergroups_operator.policy.token import restart, restarted
from workergroups_operator.templates import Templates
from workergroups_operator.timings import Timings


@dataclass(frozen=True)
class Decisions:
    """What the operator decided, and why it cannot do something."""

    agent: AgentLiveness
    # Why pods are refused, by node group; the head's under its component.
    refused_pods: Mapping[str, Explanation] = field(default_factory=dict)
    # What must be deleted first: the operator writes nothing until then.
    obstacle: Explanation | None = None
    # Why the RayCluster must be restarted, which is to delete and recreate it.
    restart: str | None = None
    # How often it was restarted in a row, and whether to restart it now.
    restarts: Restarts = field(default_factory=Restarts)
    # Why it was restarted, until the agent is connected to the new one.
    restarted: str | None = None
    bundles: Mapping[str, Assignment] = field(default_factory=dict)
    incarnations: Mapping[str, GroupIncarnation] = field(default_factory=dict)


def decide(
    observed: Observed, templates: Templates, refused_pods: Mapping[str, Explanation], timings: Timings
) -> Decisions:
    """Decide from what was observed, and from the pods that the API server refuses."""
    agent = agent_liveness(observed.head, observed.agent, timings)
    bundles = with_room(assign_bundles(observed.groups, observed.pools, observed.pools_elsewhere))
    why_restart = restart(observed)
    return Decisions(
        agent=agent,
        refused_pods={**refused_pods, **templates.too_large},
        obstacle=obstacle(observed),
        restart=why_restart,
        restarts=restarts(observed, why_restart, is_connected=agent.is_believed),
        restarted=restarted(observed, agent),
        bundles=bundles,
        incarnations={
            group.name: _incarnation(group, observed.written[group.name], assigned, observed, agent.session)
            for group in observed.groups
            if not isinstance(assigned := bundles[group.name], Explanation)
        },
    )


def _incarnation(
    group: WorkerGroup,
    written: str | None,
    assigned: Sequence[PlannedBundles],
    observed: Observed,
    session: str | None,
) -> GroupIncarnation:
    """Return the group's next incarnation. Its status and the plan record the last one; either may be out of date."""
    uids = {pool.name: pool.uid for pool in observed.pools}
    places = [[uids[p.pool], p.start, p.count] for p in assigned]
    revision = None if written is None else launch.digest([written, places])
    status = group.status
    planned = observed.planned(group.uid)
    last = latest(
        GroupIncarnation(status.incarnation, status.revision, status.session, status.retries or Retries())
        if status.incarnation
        else None,
        GroupIncarnation(planned.incarnation, planned.made_from, planned.session, planned.retries or Retries())
        if planned
        else None,
    )
    launched = launch_outcome(last, status.ranks, sum(part.count for part in assigned))
    return next_incarnation(last, revision, session, launched, observed.at)
