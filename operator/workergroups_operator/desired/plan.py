"""The plan for the agent, and the ConfigMap that carries it."""

import json

from workergroups_api.manifest import CONFIG_MAP, Manifest
from workergroups_api.names import PLAN_KEY, plan_name
from workergroups_api.plan import ClusterPlan, PlannedGroup, PlannedPool
from workergroups_api.resource_pool import ResourcePool
from workergroups_api.worker_group import WorkerGroup
from workergroups_common.text import plain
from workergroups_operator.decisions import Decisions
from workergroups_operator.observed import Observed, node_group_of
from workergroups_operator.policy.bundles import Blocked
from workergroups_operator.policy.incarnation import GroupIncarnation, is_final
from workergroups_operator.policy.keep_unreadable import kept_groups, kept_pools
from workergroups_operator.policy.plan_size import MAX_BYTES
from workergroups_operator.policy.rank_failures import NO_RESTARTS, FailureResponse
from workergroups_operator.templates import notice

# Of what drivers are told of a failure.
_MAX_CAUSE = 512


def cluster_plan(observed: Observed, decisions: Decisions) -> ClusterPlan:
    """Return the plan: all pools, the groups that have bundles, and what keeps running of unreadable objects."""
    planned = (_group(group, observed, decisions) for group in observed.groups)
    return ClusterPlan(
        cluster=observed.key.name,
        pools=(*(_pool(pool, observed, decisions) for pool in observed.pools), *kept_pools(observed)),
        groups=(
            *(group for group in planned if group is not None),
            *kept_groups(observed, decisions.groups.bundles),
        ),
        pods_stay=decisions.is_held or None,
    )


def config_map(plan: ClusterPlan) -> Manifest:
    """Return the plan as one key, sorted, so that equal plans are equal texts."""
    text = json.dumps(plan.to_json(), sort_keys=True)
    if len(text) > MAX_BYTES:
        # Only drivers read the causes, and the ranks run without.
        groups = tuple(group.model_copy(update={"cause": None}) for group in plan.groups)
        text = json.dumps(plan.model_copy(update={"groups": groups}).to_json(), sort_keys=True)
    return CONFIG_MAP.manifest({"name": plan_name(plan.cluster)}, data={PLAN_KEY: text})


def _pool(pool: ResourcePool, observed: Observed, decisions: Decisions) -> PlannedPool:
    spec, size, is_suspended = pool.spec, decisions.sizes[pool.name], pool.name in decisions.suspended_pools
    devices = {spec.accelerator.ray_name: float(spec.accelerator.per_process)} if spec.devices_per_node else {}
    return PlannedPool(
        name=pool.name,
        uid=pool.uid,
        node_group=node_group_of(pool),
        generation=pool.generation,
        nodes=size.nodes,
        settled=0 if is_suspended else size.settled,
        processes_per_node=spec.processes_per_node,
        bundle={"CPU": float(spec.max_colocate_count)} | devices,
        vendor=spec.accelerator.vendor,
        devices_per_process=spec.accelerator.per_process,
        max_colocate_count=spec.max_colocate_count,
        # The agent releases the bundles of a suspended pool, and reports when its nodes have left Ray.
        reserves=pool.is_reserved and not is_suspended,
        gives_back=is_suspended,
        notice_seconds=notice.seconds_of(pool),
        domains=None if is_suspended else _domains(pool, observed),
        preflight=None if is_suspended else decisions.preflights.get(pool.name),
    )


def _domains(pool: ResourcePool, observed: Observed) -> dict[str, str] | None:
    domains = observed.domains.get(pool.name)
    return None if domains is None or domains.unreadable else dict(domains.of_pods)


def _group(group: WorkerGroup, observed: Observed, decisions: Decisions) -> PlannedGroup | None:
    assignment = decisions.groups.bundles[group.name]
    if isinstance(assignment, Blocked):
        return None
    incarnation = decisions.groups.incarnations[group.name]
    before = observed.planned(group.uid)
    response = decisions.groups.failures.get(group.name)
    # While the code is gone, the ranks keep running with the code that they have.
    revision = observed.launch_revisions[group.name] or (before.launch_revision if before else None)
    return PlannedGroup(
        name=group.name,
        uid=group.uid,
        launch_revision=None if decisions.rolling(group.name) else revision,
        cause=_cause(incarnation, response, before),
        is_final=is_final(incarnation, response, before) or None,
        hang_seconds=group.spec.failure_policy.hang_seconds,
        **incarnation.recorded(),
    )


def _cause(incarnation: GroupIncarnation, response: FailureResponse | None, before: PlannedGroup | None) -> str | None:
    """Return which rank failed and how, if the latest ranks are created after a failure. The last plan may say it."""
    restarts = (before.restarts if before else None) or NO_RESTARTS
    if response is not None and incarnation.restarts.count > restarts.count:
        first = response.failure.ranks[0]
        return plain(f"rank {first.rank}: {first.reason}: {first.message}", _MAX_CAUSE)
    return before.cause if before is not None and before.incarnation == incarnation.number else None
