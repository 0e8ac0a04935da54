"""Step four: all that is decided about one cluster, as one value. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from workergroups_api import launch
from workergroups_api.conditions import Explanation
from workergroups_api.manifest import SECRET
from workergroups_api.names import group_env_name
from workergroups_api.plan import PlannedBundles
from workergroups_api.vouching import doubt
from workergroups_api.worker_group import WorkerGroup
from workergroups_operator.observed import Observed
from workergroups_operator.policy.agent_liveness import AgentLiveness, agent_liveness
from workergroups_operator.policy.bundles import Assignment, assign_bundles
from workergroups_operator.policy.group_env import PresentEnv, env_digest, with_room_in_secret
from workergroups_operator.policy.incarnation import (
    FIRST,
    Failed,
    GroupIncarnation,
    last_incarnation,
    launch_outcome,
    next_incarnation,
)
from workergroups_operator.policy.lifetime import obstacle
from workergroups_operator.policy.plan_size import with_room
from workergroups_operator.policy.rank_failures import GroupFailure, group_failure
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
    # Group -> what failed of its last incarnation. The present one is another if the ranks are restarted now.
    failures: Mapping[str, GroupFailure] = field(default_factory=dict)
    # Group -> what it takes from Secrets and ConfigMaps now, or why it cannot; without groups that take nothing.
    environments: Mapping[str, PresentEnv | Explanation] = field(default_factory=dict, repr=False)


def decide(
    observed: Observed, templates: Templates, refused_pods: Mapping[str, Explanation], timings: Timings
) -> Decisions:
    """Decide from what was observed, and from the pods that the API server refuses."""
    agent = agent_liveness(observed.head, observed.agent, timings)
    assigned = assign_bundles(observed.groups, observed.pools, observed.pools_elsewhere)
    bundles = with_room(assigned, {group.name: group.spec.failure_policy.max_restarts for group in observed.groups})
    environments = _environments(observed)
    incarnations = {
        group.name: _incarnation(group, environments.get(group.name), parts, observed, agent)
        for group in observed.groups
        if not isinstance(parts := bundles[group.name], Explanation)
    }
    why_restart = restart(observed)
    return Decisions(
        agent=agent,
        refused_pods={**refused_pods, **templates.too_large},
        obstacle=obstacle(observed),
        restart=why_restart,
        restarts=restarts(observed, why_restart, is_connected=agent.is_believed),
        restarted=restarted(observed, agent),
        bundles=bundles,
        incarnations={name: incarnation for name, (incarnation, _) in incarnations.items()},
        failures={name: failure for name, (_, failure) in incarnations.items() if failure is not None},
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
    agent: AgentLiveness,
) -> tuple[GroupIncarnation, GroupFailure | None]:
    """Return the group's next incarnation, and what failed of the last one."""
    uids = {pool.name: pool.uid for pool in observed.pools}
    places = [[uids[p.pool], p.start, p.count] for p in assigned]
    written = observed.written[group.name]
    revision = None if written is None else launch.digest([written, places])
    last = last_incarnation(group.status, observed.planned(group.uid))
    launched = launch_outcome(last, group.status.ranks, sum(part.count for part in assigned))
    known = environment.digest if isinstance(environment, PresentEnv) else None
    failure = _failure(group, last, observed, agent)
    failed = Failed(failure, group.spec.failure_policy) if failure else None
    return next_incarnation(last, revision, agent.session, known, launched, failed, observed.at), failure


def _failure(
    group: WorkerGroup, last: GroupIncarnation | None, observed: Observed, agent: AgentLiveness
) -> GroupFailure | None:
    """Return what failed of the last incarnation, if the agent vouches for its report on it."""
    report = group.status.ranks
    if report is None or not agent.is_believed or doubt(group.uid, observed.agent.doubts):
        return None
    number = FIRST if last is None else last.number
    is_of_last = (report.session, report.incarnation) == (agent.session, number)
    return group_failure(report, observed.pods) if is_of_last else None
