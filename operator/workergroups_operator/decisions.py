"""Step four: all that is decided about one cluster, as one value. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from workergroups_api import launch
from workergroups_api.conditions import Explanation
from workergroups_api.manifest import SECRET
from workergroups_api.names import group_env_name
from workergroups_api.plan import PlannedBundles
from workergroups_api.retries import Retries
from workergroups_api.worker_group import WorkerGroup
from workergroups_operator.observed import Observed
from workergroups_operator.policy.agent_liveness import AgentLiveness, agent_liveness
from workergroups_operator.policy.bundles import Assignment, assign_bundles
from workergroups_operator.policy.group_env import PresentEnv, env_digest, with_room_in_secret
from workergroups_operator.policy.incarnation import GroupIncarnation, latest, launch_outcome, next_incarnation
from workergroups_operator.policy.lifetime import obstacle
from workergroups_operator.policy.plan_size import with_room
from workergroups_operator.policy.restarts import Restarts, restarts
from workergroups_operator.policy.token import present_token, restart, restarted
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
    # Group -> what it takes from Secrets and ConfigMaps now, or why it cannot; without groups that take nothing.
    environments: Mapping[str, PresentEnv | Explanation] = field(default_factory=dict, repr=False)


def decide(
    observed: Observed, templates: Templates, refused_pods: Mapping[str, Explanation], timings: Timings
) -> Decisions:
    """Decide from what was observed, and from the pods that the API server refuses."""
    agent = agent_liveness(observed.head, observed.agent, timings)
    bundles = with_room(assign_bundles(observed.groups, observed.pools, observed.pools_elsewhere))
    environments = _environments(observed)
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
            group.name: _incarnation(group, environments.get(group.name), assigned, observed, agent.session)
            for group in observed.groups
            if not isinstance(assigned := bundles[group.name], Explanation)
        },
        environments=environments,
    )


def _environments(observed: Observed) -> dict[str, PresentEnv | Explanation]:
    """Return the environments of groups. While there is no token yet, there is none of a group either."""
    live = observed.child(SECRET, group_env_name(observed.key.name)) or {}
    present = with_room_in_secret(observed.environments, live.get("data") or {})
    token, uids = present_token(observed), {group.name: group.uid for group in observed.groups}
    found: dict[str, PresentEnv | Explanation] = {}
    for name, each in present.items():
        if isinstance(each, Explanation):
            found[name] = each
        elif token is not None and name in uids:
            found[name] = PresentEnv(env_digest(uids[name], each, token), each)
    return found


def _incarnation(
    group: WorkerGroup,
    environment: PresentEnv | Explanation | None,
    assigned: Sequence[PlannedBundles],
    observed: Observed,
    session: str | None,
) -> GroupIncarnation:
    """Return the group's next incarnation. Its status and the plan record the last one; either may be out of date."""
    uids = {pool.name: pool.uid for pool in observed.pools}
    places = [[uids[p.pool], p.start, p.count] for p in assigned]
    written = observed.written[group.name]
    revision = None if written is None else launch.digest([written, places])
    status = group.status
    planned = observed.planned(group.uid)
    last = latest(
        GroupIncarnation(
            status.incarnation, status.revision, status.session, status.retries or Retries(), status.environment
        )
        if status.incarnation
        else None,
        GroupIncarnation(
            planned.incarnation, planned.made_from, planned.session, planned.retries or Retries(), planned.environment
        )
        if planned
        else None,
    )
    launched = launch_outcome(last, status.ranks, sum(part.count for part in assigned))
    known = environment.digest if isinstance(environment, PresentEnv) else None
    return next_incarnation(last, revision, session, known, launched, observed.at)
