"""Step four: all that is decided about one cluster, as one value. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from workergroups_api.conditions import Explanation
from workergroups_api.manifest import Manifest, annotations_of
from workergroups_api.names import REPLACED_HEAD_ANNOTATION
from workergroups_api.plan import PlannedBundles, PlannedPreflight
from workergroups_api.pool_status import PoolDrivers, PoolIdle
from workergroups_api.report import PoolReport
from workergroups_api.resource_pool import ResourcePool
from workergroups_api.retries import Retries
from workergroups_api.vocabulary import Component
from workergroups_operator.group_decisions import GroupDecisions, decide_groups
from workergroups_operator.observed import Observed, node_group_of
from workergroups_operator.policy.agent_liveness import AgentLiveness, agent_liveness, head_may_return
from workergroups_operator.policy.believed_report import pool_report
from workergroups_operator.policy.bundles import Assignment
from workergroups_operator.policy.cluster_restart import ClusterRestart, cluster_restart
from workergroups_operator.policy.drivers import drivers, is_over, session_of_drivers
from workergroups_operator.policy.idle import deleted_pools, idle_pools
from workergroups_operator.policy.keep_unreadable import kept_groups
from workergroups_operator.policy.leaving_pods import Replicas, replicas
from workergroups_operator.policy.lifetime import obstacle
from workergroups_operator.policy.pool_size import PoolSize, pool_capacities, pool_sizes
from workergroups_operator.policy.preflight import planned_preflight
from workergroups_operator.policy.queueing import is_gathering, is_held
from workergroups_operator.policy.release import releases
from workergroups_operator.policy.roll import Roll, roll_of
from workergroups_operator.policy.suspension import is_off, terminating_pools, with_released
from workergroups_operator.templates import Templates
from workergroups_operator.templates.live import live_head
from workergroups_operator.templates.outdated import superseded_head
from workergroups_operator.timings import Timings

NO_EXPLANATIONS: Mapping[str, Explanation] = {}


@dataclass(frozen=True)
class Decisions:
    """What the operator decided, and why it cannot do something."""

    agent: AgentLiveness
    # Why pods are refused, by node group; the head's under its component.
    refused_pods: Mapping[str, Explanation]
    # What must be deleted first: the operator writes nothing until then.
    obstacle: Explanation | None
    # Whether the RayCluster must be restarted, which is to delete and recreate it.
    restart: ClusterRestart
    # Whether all pools are suspended, so that there is no RayCluster.
    is_off: bool
    # The RayCluster must stay as it is: a queue runs it as it was admitted, or it may get further pools before it is
    # created.
    is_held: bool
    # The head's pod that must be deleted, so that KubeRay creates one from the new template.
    old_head: Manifest | None
    # The rolls that are not over, by node group, and why others cannot begin.
    rolls: Mapping[str, Roll]
    blocked_rolls: Mapping[str, Explanation]
    groups: GroupDecisions

    # All that follows is by pool: its node group;
    node_groups: Mapping[str, str]
    # why it has no pods; without pools that should have some;
    suspended_pools: Mapping[str, Explanation]
    # how often it has given back its nodes since it was last ready, and when it tries again;
    releases: Mapping[str, Retries]
    # whether it is in use; without pools that keep their devices in any case;
    idle: Mapping[str, PoolIdle]
    # why it must be deleted: it is idle;
    deleted_pools: Mapping[str, Explanation]
    # what the agent reports, as far as it counts; else empty;
    pool_reports: Mapping[str, PoolReport] = field(repr=False)
    # how many nodes are planned, and how many pods the RayCluster asks for;
    sizes: Mapping[str, PoolSize]
    replicas: Mapping[str, Replicas]
    # the drivers on its Ray cluster, and those that it lost; without pools whose drivers are not known;
    drivers: Mapping[str, PoolDrivers]
    # what is checked on its nodes. Nothing is while they are being restarted: the agent then forgets which have
    # passed, and checks all of them afterwards.
    preflights: Mapping[str, PlannedPreflight]

    def rolling(self, group: str) -> str | None:
        """Return the first of the group's pools whose nodes are being replaced."""
        parts = self.groups.bundles[group].bundles
        return next((part.pool for part in parts if self.node_groups.get(part.pool) in self.rolls), None)


def decide(
    observed: Observed,
    templates: Templates,
    refused_pods: Mapping[str, Explanation],
    timings: Timings,
    blocked_rolls: Mapping[str, Explanation] = NO_EXPLANATIONS,
) -> Decisions:
    """Decide from what was observed, from the pods that the API server refuses, and from the rolls that wait for it."""
    may_return = head_may_return(observed)
    agent = agent_liveness(observed.head, observed.agent, timings, head_may_return=may_return)
    reports, old_head = {pool.name: pool_report(pool, observed, agent) for pool in observed.pools}, _old_head(observed)
    capacities = pool_capacities(observed, reports)
    rolls = _rolls(observed, templates, reports, old_head)
    records = releases(observed, agent, rolls.keys())
    suspended = with_released(observed, templates.suspended, records)
    resting = {node_group_of(pool) for pool in observed.pools if pool.name in terminating_pools(observed, suspended)}
    groups = decide_groups(observed, templates, agent, capacities, suspended)
    sizes = pool_sizes(observed, capacities, _planned_bundles(observed, groups.bundles))
    off = is_off(observed, suspended)
    return Decisions(
        agent=agent,
        refused_pods={**refused_pods, **templates.too_large},
        obstacle=obstacle(observed, is_off=off),
        restart=cluster_restart(observed, agent, is_off=off),
        rolls={name: roll for name, roll in rolls.items() if name not in resting},
        blocked_rolls={**templates.too_large_rolls, **blocked_rolls},
        old_head=old_head,
        node_groups={pool.name: node_group_of(pool) for pool in observed.pools},
        groups=groups,
        releases=records,
        idle=idle_pools(observed),
        deleted_pools=deleted_pools(observed),
        suspended_pools=suspended,
        is_off=off,
        pool_reports=reports,
        sizes=sizes,
        replicas={pool.name: replicas(pool, sizes[pool.name], reports[pool.name], observed) for pool in observed.pools},
        drivers={pool.name: found for pool in observed.pools if (found := _drivers(pool, agent, observed))},
        is_held=is_held(observed) or is_gathering(observed),
        preflights={
            pool.name: preflight
            for pool in observed.pools
            if node_group_of(pool) not in rolls and (preflight := planned_preflight(pool, templates.of(pool)))
        },
    )


def _planned_bundles(observed: Observed, bundles: Mapping[str, Assignment]) -> dict[str, tuple[PlannedBundles, ...]]:
    """Return the bundles of all groups that the plan will have."""
    planned = {name: assignment.bundles for name, assignment in bundles.items()}
    return planned | {group.name: group.bundles for group in kept_groups(observed, bundles)}


def _rolls(
    observed: Observed, templates: Templates, reports: Mapping[str, PoolReport], old_head: Manifest | None
) -> dict[str, Roll]:
    """Return the rolls that are not over, by node group."""
    is_head_leaving = old_head is not None or templates.replaces_head
    found: dict[str, Roll] = {}
    for pool in observed.pools:
        name = node_group_of(pool)
        is_known = reports[pool.name].session is not None and not is_head_leaving
        report = reports[pool.name] if is_known else None
        roll = roll_of(pool, observed.all_pods_of(name), templates.roll(pool), report)
        if roll is not None:
            found[name] = roll
    return found


def _old_head(observed: Observed) -> Manifest | None:
    """Return the head's pod that must be deleted."""
    heads, noted = observed.pods_of(Component.HEAD), annotations_of(observed.ray_cluster).get(REPLACED_HEAD_ANNOTATION)
    replaced = next((pod for pod in heads if pod["metadata"]["uid"] == noted), None)
    return replaced or superseded_head(heads, live_head(observed))


def _drivers(pool: ResourcePool, agent: AgentLiveness, observed: Observed) -> PoolDrivers | None:
    before, report = pool.status.drivers, pool.status.reservation
    ended = is_over(session_of_drivers(before, report), agent, observed)
    return drivers(before, report, is_over=ended, now=observed.at)
