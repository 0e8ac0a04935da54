"""A pool's conditions: Admitted, ClusterReady to PreflightPassed, Ready that sums them up, and those aside."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from workergroups_api.conditions import Explanation, Finding
from workergroups_api.manifest import (
    CONFIG_MAP,
    DEPLOYMENT,
    LEASE,
    NETWORK_POLICY,
    RAY_CLUSTER,
    ROLE,
    ROLE_BINDING,
    SECRET,
    SERVICE_ACCOUNT,
    Manifest,
    name_of,
)
from workergroups_api.names import CLUSTER_LABEL, COMPONENT_LABEL, POOL_LABEL, TOKEN_ANNOTATION
from workergroups_api.report import PoolReport, pods_digest
from workergroups_api.resource_pool import ResourcePool
from workergroups_api.vocabulary import Component, ConditionType, OnDeadline, Preflight, PreflightState, Reason
from workergroups_common.ranges import numbers
from workergroups_operator.decisions import Decisions
from workergroups_operator.observed import Observed, disruption, is_running, node_group_of, runs_something
from workergroups_operator.policy.agent_liveness import AgentState
from workergroups_operator.policy.deadline import date_and_time
from workergroups_operator.policy.found_versions import FoundVersions, conflict, found_versions
from workergroups_operator.policy.pod_owners import mistaken_heads
from workergroups_operator.policy.pod_trouble import DECISIVE, first_trouble, setting_up
from workergroups_operator.policy.pool_size import reserved_pods
from workergroups_operator.policy.queueing import GATHER_SECONDS, is_gathering, is_held, is_suspended, queue_of
from workergroups_operator.policy.retry import BUDGET, announced, is_exhausted
from workergroups_operator.policy.roll import Roll, has_begun
from workergroups_operator.policy.suspension import terminating_pools
from workergroups_operator.status.admitted import admitted
from workergroups_operator.status.conclusion import (
    Conclusion,
    StatusInputs,
    agent_lost,
    agent_trouble,
    conclude,
    finding,
    head_away,
    unvouched,
)
from workergroups_operator.status.suspended import not_ready, pool_idle, pool_suspended
from workergroups_operator.status.up_to_date import pool_up_to_date
from workergroups_operator.templates.outdated import outdated, superseded
from workergroups_operator.templates.stamp import digest_of

_cluster_finding = partial(finding, ConditionType.CLUSTER_READY)
_nodes_finding = partial(finding, ConditionType.NODES_READY)
_bundles_finding = partial(finding, ConditionType.BUNDLES_RESERVED)
_preflight_finding = partial(finding, ConditionType.PREFLIGHT_PASSED)


def pool_conditions(pool: ResourcePool, inputs: StatusInputs) -> Conclusion:
    """Return the pool's conditions."""
    why = inputs.decisions.suspended_pools.get(pool.name)
    chain = _chain(pool, inputs) if why is None else _suspended_chain(pool, why, inputs)
    aside = (*pool_suspended(pool, inputs), *pool_idle(pool, inputs), pool_up_to_date(pool, inputs))
    record = inputs.decisions.releases.get(pool.name)
    tried_since = record.next if record and why is None else None
    return conclude(pool, chain, aside, inputs.now, drivers_lost(pool, inputs), tried_since)


def _chain(pool: ResourcePool, inputs: StatusInputs) -> tuple[Finding, ...]:
    reserved = (_bundles_reserved(pool, inputs),) if pool.is_reserved else ()
    admission = admitted(pool, inputs)
    queue = (admission,) if admission else ()
    checked = () if pool.spec.preflight is Preflight.NONE else (_preflight_passed(pool, inputs),)
    return (*queue, _cluster_ready(pool, inputs), _nodes_ready(pool, inputs), *reserved, *checked)


def drivers_lost(pool: ResourcePool, inputs: StatusInputs) -> Explanation | None:
    """Explain that nothing runs on the pool since its drivers ended with Ray's head; None if that is not so."""
    drivers = inputs.decisions.drivers.get(pool.name)
    if drivers is None or drivers.lost is None:
        return None
    lost = drivers.lost
    more = ", ..." if lost.count > len(lost.jobs) else ""
    jobs = f" ({', '.join(lost.jobs)}{more})" if lost.jobs else ""
    return Explanation(
        Reason.DRIVERS_LOST,
        f"Ray's head was lost at {date_and_time(lost.time)} with {lost.count} "
        f"driver{'s' if lost.count > 1 else ''}{jobs}, and none has connected since: start it again, such as with "
        + pool.in_namespace(f"workergroups job submit {pool.name}"),
    )


def _suspended_chain(pool: ResourcePool, why: Explanation, inputs: StatusInputs) -> tuple[Finding, ...]:
    """Return the chain of a suspended pool; other pools may still need its cluster."""
    reserved = (ConditionType.BUNDLES_RESERVED,) if pool.is_reserved else ()
    checked = () if pool.spec.preflight is Preflight.NONE else (ConditionType.PREFLIGHT_PASSED,)
    types = (ConditionType.NODES_READY, *reserved, *checked)
    is_off = inputs.decisions.is_off
    cluster = not_ready(ConditionType.CLUSTER_READY, why) if is_off else _cluster_ready(pool, inputs)
    return (cluster, *(not_ready(type_, why) for type_ in types))


def ready_nodes(pool: ResourcePool, inputs: StatusInputs) -> int:
    """Return how many nodes have joined Ray, and have their bundles if the pool is reserved."""
    if pool.name in inputs.decisions.suspended_pools:
        return 0
    report = inputs.decisions.pool_reports[pool.name]
    return report.reserved_nodes if pool.is_reserved else min(report.joined_nodes, node_count(pool, inputs))


def node_count(pool: ResourcePool, inputs: StatusInputs) -> int:
    """Return how many nodes the pool should have now: more than the spec says while it shrinks."""
    return max(inputs.decisions.sizes[pool.name].nodes, inputs.decisions.replicas[pool.name].count)


def placed_nodes(pool: ResourcePool, inputs: StatusInputs) -> list[int]:
    """Return the nodes that have their bundles and whose pods run, in ascending order."""
    return sorted(reserved_pods(pool, inputs.decisions.pool_reports[pool.name], inputs.observed))


def node_versions(pool: ResourcePool, inputs: StatusInputs) -> FoundVersions | None:
    """Return the Ray and Python in the image of the pool's nodes; None while they are unknown."""
    return found_versions(inputs.observed.pods_of(Component.WORKER, node_group_of(pool)))


def template_that_ran(pool: ResourcePool, inputs: StatusInputs) -> str | None:
    """Return the digest of the template of which pods have run: of the present one, or of the last that was noted.

    A pool whose nodes end forgets it, so that it starts again with its present spec.
    """
    if pool.name in terminating_pools(inputs.observed, inputs.decisions.suspended_pools.keys()):
        return None
    present = digest_of(inputs.templates.of(pool))
    pods = inputs.observed.pods_of(Component.WORKER, node_group_of(pool))
    return present if any(map(has_begun, pods)) else pool.status.template


def selector(pool: ResourcePool) -> str:
    """Return the label selector of the pods of the pool's nodes."""
    labels = {CLUSTER_LABEL: pool.cluster, POOL_LABEL: pool.name, COMPONENT_LABEL: Component.WORKER}
    return ",".join(f"{key}={value}" for key, value in labels.items())


def _cluster_ready(pool: ResourcePool, inputs: StatusInputs) -> Finding:
    """Find out whether the agent is connected to the Ray head. KubeRay's own `ready` never becomes false again."""
    decisions, observed = inputs.decisions, inputs.observed
    why = _restarting(decisions) or decisions.obstacle
    if why is None and decisions.agent.state is AgentState.HEAD_AWAY:
        return _cluster_finding("Unknown", head_away(inputs))
    why = why or _head_missing(inputs)
    if why is None and decisions.agent.state is AgentState.LOST:
        return _cluster_finding("Unknown", agent_lost(inputs))
    if why is None and decisions.agent.state is AgentState.STARTING:
        why = _agent_missing(observed, inputs)
    if why:
        since = f"; the cluster is being restarted, since {decisions.restart.last}" if decisions.restart.last else ""
        is_unfit = _is_unfit(pool, why, observed.pods_of(Component.HEAD), inputs.templates.asked_head)
        return _cluster_finding(
            "False",
            Explanation(why.reason, why.message + since),
            decisive=why.reason in DECISIVE,
            final=is_unfit or why.reason == Reason.RESTART_FAILED,
        )
    return _cluster_finding("True", Explanation(Reason.AGENT_CONNECTED, "Ray's head answers the agent"))


def _is_unfit(pool: ResourcePool, why: Explanation, pods: Sequence[Manifest], asked: Manifest) -> bool:
    """Return whether the image that the spec asks for now cannot run Ray, so that waiting does not help.

    With `onDeadline: Release`, the pool gives back its nodes, and is tried again.
    """
    is_asked = not outdated(pods, asked)
    return why.reason == Reason.IMAGE_UNFIT and is_asked and pool.spec.on_deadline is not OnDeadline.RELEASE


def _restarting(decisions: Decisions) -> Explanation | None:
    if decisions.restart.why is None:
        return None
    why, retries = f"{decisions.restart.why}, and the running Ray knows only the old one", decisions.restart.retries
    if is_exhausted(retries):
        return Explanation(
            Reason.RESTART_FAILED,
            f"{why}; the same happened after each of {BUDGET} restarts: find out who changes the Secret or the "
            f"annotation {TOKEN_ANNOTATION} of the RayCluster, then delete the RayCluster",
        )
    if retries.next:
        return Explanation(Reason.RESTARTING, f"{why}, as after the last restart; {announced(retries)}")
    return Explanation(Reason.RESTARTING, f"{why}: the operator restarts the cluster, and with it the ranks")


def _head_missing(inputs: StatusInputs) -> Explanation | None:
    observed = inputs.observed
    if observed.head is not None:
        return None
    if observed.ray_cluster is not None and is_suspended(observed.ray_cluster):
        # Kueue refuses some changes of labels.
        return inputs.failures.of(RAY_CLUSTER) or _suspended(observed)
    if is_gathering(observed):
        return Explanation(
            Reason.HEAD_STARTING, f"waiting {GATHER_SECONDS:g} s for further pools before the cluster joins its queue"
        )
    if (trouble := _trouble_of_head(inputs)) is not None:
        return trouble
    heads = observed.pods_of(Component.HEAD)
    if (runs := setting_up(heads)) is not None:
        return Explanation(runs.reason, f"head: {runs.message}")
    if (old := observed.leaving_head) is not None:
        name = old["metadata"]["name"]
        return Explanation(
            Reason.HEAD_STARTING, f"waiting until the head's old pod, {name}, which is being deleted, is gone"
        )
    if heads:
        return Explanation(Reason.HEAD_STARTING, "waiting for the Ray head's pod to run")
    refused = inputs.decisions.refused_pods.get(Component.HEAD)
    if refused:
        return Explanation(refused.reason, f"head: {refused.message}")
    return inputs.failures.of(SECRET, NETWORK_POLICY, RAY_CLUSTER) or _head_not_made(observed)


def _trouble_of_head(inputs: StatusInputs) -> Explanation | None:
    """Explain what keeps the head's pod from running; None if it runs, or nothing is known to be wrong."""
    if inputs.observed.head is not None:
        return None
    trouble = first_trouble(inputs.observed.pods_of(Component.HEAD))
    return Explanation(trouble.reason, f"head: {trouble.message}") if trouble else None


def _suspended(observed: Observed) -> Explanation:
    cluster = observed.key.name
    if observed.queueing.workload is not None or queue_of(observed.ray_cluster or {"metadata": {}}) is not None:
        what = f"RayCluster {cluster} is suspended until its queue admits it: see the condition Admitted"
        return Explanation(Reason.RAY_CLUSTER_SUSPENDED, what)
    resume = f"""kubectl patch raycluster {cluster} --type=merge --patch='{{"spec":{{"suspend":false}}}}'"""
    return Explanation(
        Reason.RAY_CLUSTER_SUSPENDED,
        f"RayCluster {cluster} has spec.suspend: true, which somebody has set by hand; waiting until it is resumed, "
        f"by: {resume}",
    )


def _head_not_made(observed: Observed) -> Explanation:
    mistaken = mistaken_heads(observed.key.name, observed.foreign_pods)
    if mistaken:
        return Explanation(
            Reason.HEAD_STARTING,
            f"KubeRay takes pod {mistaken[0]} for the head because of its labels, but it belongs to no RayCluster "
            f"{observed.key.name}: delete the pod, or remove its label ray.io/cluster",
        )
    complaint = f"; KubeRay: {observed.complaint}" if observed.complaint else ""
    return Explanation(Reason.HEAD_STARTING, f"waiting for KubeRay to create the head{complaint}")


def _agent_missing(observed: Observed, inputs: StatusInputs) -> Explanation:
    failure = inputs.failures.of(SECRET, SERVICE_ACCOUNT, ROLE, ROLE_BINDING, LEASE, NETWORK_POLICY, DEPLOYMENT)
    waiting = Explanation(Reason.AGENT_STARTING, "waiting for the agent to join the Ray cluster")
    return agent_trouble(observed) or failure or waiting


def _nodes_ready(pool: ResourcePool, inputs: StatusInputs) -> Finding:
    """Find out whether the nodes that have joined Ray are the pods that run now."""
    total = pool.spec.nodes
    report = inputs.decisions.pool_reports[pool.name]
    pods = inputs.observed.pods_of(Component.WORKER, node_group_of(pool))
    running = pods_digest(pod["metadata"]["name"] for pod in pods if is_running(pod))
    if (unknown := unvouched(pool, inputs)) is not None:
        return _nodes_finding("Unknown", unknown)
    roll = inputs.decisions.rolls.get(node_group_of(pool))
    if roll is not None:
        return _rolling(pool, roll, inputs)
    if _have_joined(pool, report, running, inputs):
        return _nodes_finding("True", Explanation(Reason.NODES_JOINED, _joined(report.joined_nodes, pool)))
    refused = inputs.decisions.refused_pods.get(node_group_of(pool))
    if refused and (made := _made(pool, pods, inputs)) < total:
        message = f"{made} of {total} pods created: {refused.message}"
        return _nodes_finding("False", Explanation(refused.reason, message), decisive=True)
    head = found_versions(inputs.observed.pods_of(Component.HEAD))
    other_ray = conflict(pool.cluster, head, node_versions(pool, inputs))
    why = other_ray or _not_admitted(pool, inputs) or _nodes_missing(pool, report, pods, inputs)
    is_final = _is_unfit(pool, why, pods, inputs.templates.asked_of(pool))
    return _nodes_finding("False", why, decisive=why.reason in DECISIVE, final=is_final)


def _have_joined(pool: ResourcePool, report: PoolReport, running: str, inputs: StatusInputs) -> bool:
    """Return whether all nodes of the spec have joined; others may be leaving."""
    if report.joined_nodes == pool.spec.nodes and report.joined_pods == running:
        return True
    placed = reserved_pods(pool, report, inputs.observed)
    if not pool.is_reserved:
        return len(placed) >= pool.spec.nodes
    return placed.keys() >= set(range(pool.spec.nodes))


def _rolling(pool: ResourcePool, roll: Roll, inputs: StatusInputs) -> Finding:
    """Report how far the roll is, and what stops it: the nodes that were not replaced keep running."""
    count = f"restarting the nodes one by one: {len(roll.new)} of {roll.total} new pods created"
    if inputs.decisions.old_head is not None or inputs.templates.replaces_head:
        count += "; the head first"
    head = found_versions(inputs.observed.pods_of(Component.HEAD))
    trouble = first_trouble(roll.new)
    if trouble is not None and (leaving := _yet_to_leave(pool, trouble, inputs)) is not None:
        return _nodes_finding("False", Explanation(Reason.ROLLING, f"{count}; {leaving}"))
    why = trouble or _trouble_of_head(inputs) or conflict(pool.cluster, head, found_versions(roll.new))
    why = why or inputs.decisions.refused_pods.get(node_group_of(pool))
    if why is None:
        return _nodes_finding("False", Explanation(Reason.ROLLING, count))
    # What has run may have changed something, so the operator does not go on by itself: see `policy.roll.is_stuck`.
    again = pool.in_namespace(f"workergroups restart pool/{pool.name}")
    way = f", then: {again}" if any(map(has_begun, roll.new)) else ", and it goes on"
    message = f"{count}, and the restart stops here: {why.message}; correct the spec{way}"
    is_final = _is_unfit(pool, why, roll.new, inputs.templates.asked_of(pool))
    return _nodes_finding("False", Explanation(why.reason, message), decisive=why.reason in DECISIVE, final=is_final)


def _yet_to_leave(pool: ResourcePool, trouble: Explanation, inputs: StatusInputs) -> str | None:
    """Return for which of the pool's own pods a new one waits, since they hold their devices until they have ended."""
    if trouble.reason != Reason.INSUFFICIENT_RESOURCES:
        return None
    pods = inputs.observed.all_pods_of(node_group_of(pool))
    leaving = sorted(name_of(pod) for pod in pods if "deletionTimestamp" in pod["metadata"])
    more = f" and {len(leaving) - 1} more" if len(leaving) > 1 else ""
    return f"waiting until pod {leaving[0]}{more}, which is being deleted, gives its devices back" if leaving else None


def _made(pool: ResourcePool, pods: list[dict[str, object]], inputs: StatusInputs) -> int:
    """Return how many pods can stay: all but those of an older template in which nothing runs."""
    return len(pods) - len(superseded(pods, inputs.templates.of(pool)))


def _not_admitted(pool: ResourcePool, inputs: StatusInputs) -> Explanation | None:
    """Explain that a queue admitted fewer nodes than the pool has by now; None if it did not."""
    group = inputs.observed.live_node_group(node_group_of(pool)) or {}
    admitted = int(group.get("replicas") or 0)
    if not is_held(inputs.observed) or admitted >= pool.spec.nodes:
        return None
    return Explanation(
        Reason.CHANGES_WAIT,
        f"the queue has admitted {admitted} of {pool.spec.nodes} nodes: to queue for all of them, delete RayCluster "
        f"{pool.cluster}, which ends its ranks",
    )


def _joined(nodes: int, pool: ResourcePool) -> str:
    return f"{min(nodes, pool.spec.nodes)} of {pool.spec.nodes} nodes joined Ray"


def _nodes_missing(
    pool: ResourcePool, report: PoolReport, pods: list[dict[str, object]], inputs: StatusInputs
) -> Explanation:
    total, trouble = pool.spec.nodes, first_trouble(pods)
    # The agent may not have seen yet that some have gone.
    count = _joined(min(report.joined_nodes, sum(map(is_running, pods))), pool)
    if trouble and (leaving := _yet_to_leave(pool, trouble, inputs)) is not None:
        return Explanation(Reason.NODES_STARTING, f"{count}; {leaving}")
    if trouble:
        return Explanation(trouble.reason, f"{count}: {trouble.message}")
    failure = inputs.failures.of(RAY_CLUSTER)
    if failure and len(pods) < total:
        return failure
    if report.joined_nodes >= total:
        return _node_leaving(pool, inputs) or Explanation(
            Reason.PODS_CHANGED,
            f"{_leaving(pool, inputs) or 'pods were created or deleted a moment ago'}, and Ray has not noticed yet "
            f"(before that: {_joined(report.joined_nodes, pool)})",
        )
    if (runs := setting_up(pods)) is not None:
        return Explanation(runs.reason, f"{count}: {runs.message}")
    complaint = inputs.observed.complaint if len(pods) < total else None
    said = f"; KubeRay: {complaint}" if complaint else ""
    return Explanation(Reason.NODES_STARTING, f"{count}; {len(pods)} of {total} pods created{said}")


def _node_leaving(pool: ResourcePool, inputs: StatusInputs) -> Explanation | None:
    """Say until when a pod runs that is being deleted: its ranks have been told, and may still have something to do."""
    running = filter(runs_something, inputs.observed.all_pods_of(node_group_of(pool)))
    ends = (pod["metadata"].get("deletionTimestamp") for pod in running)
    until = min(filter(None, ends), default=None)
    if until is None or datetime.fromisoformat(until) <= inputs.now:
        return None
    return Explanation(
        Reason.NODE_LEAVING,
        f"{_leaving(pool, inputs)}: its ranks have been told, and it ends when they have answered, or at {until}",
    )


def _leaving(pool: ResourcePool, inputs: StatusInputs) -> str | None:
    """Name a pod that is being evicted or deleted."""
    pods = inputs.observed.all_pods_of(node_group_of(pool))
    for pod in pods:
        if (evicted := disruption(pod)) is not None:
            return f"pod {pod['metadata']['name']} is being evicted: {evicted.why}"
    deleted = next((pod["metadata"]["name"] for pod in pods if "deletionTimestamp" in pod["metadata"]), None)
    return None if deleted is None else f"pod {deleted} is being deleted"


def _bundles_reserved(pool: ResourcePool, inputs: StatusInputs) -> Finding:
    if (unknown := unvouched(pool, inputs)) is not None:
        return _bundles_finding("Unknown", unknown)
    report = inputs.decisions.pool_reports[pool.name]
    reserved = sum(1 for _ in numbers(report.reserved, pool.spec.nodes))
    count = f"{reserved * pool.spec.processes_per_node} of {pool.world_size} bundles reserved"
    if reserved == pool.spec.nodes:
        return _bundles_finding("True", Explanation(Reason.RESERVED, count + _numbering(pool, inputs)))
    failure = inputs.failures.of(CONFIG_MAP)
    if failure:
        return _bundles_finding("False", failure)
    message = f"{count}: {report.message}" if report.message else count
    return _bundles_finding("False", Explanation(Reason.RESERVING, message))


def _numbering(pool: ResourcePool, inputs: StatusInputs) -> str:
    """Return how the nodes are numbered if it is not along the topology, for the end of a message."""
    domains = inputs.observed.domains.get(pool.name)
    if domains is None or not domains.unreadable:
        return ""
    return f"; nodes are numbered by their pods' names, not by {pool.spec.topology.key}: {domains.unreadable}"


def _preflight_passed(pool: ResourcePool, inputs: StatusInputs) -> Finding:
    """Find out whether all nodes have passed what the spec asks for now, by a report that is about these nodes."""
    if (unknown := unvouched(pool, inputs)) is not None:
        return _preflight_finding("Unknown", unknown)
    report, level = inputs.decisions.pool_reports[pool.name].preflight, pool.spec.preflight
    if report is None or report.level != level:
        what = "the nodes are restarted" if node_group_of(pool) in inputs.decisions.rolls else "the agent begins"
        return _preflight_finding("False", Explanation(Reason.CHECKING, f"{level}: waiting until {what}"))
    passed = sum(1 for _ in numbers(report.passed, pool.spec.nodes))
    is_well = passed == pool.spec.nodes if pool.is_reserved else report.state == PreflightState.PASSED
    if is_well:
        measured = f"; {report.message}" if report.message and report.state == PreflightState.PASSED else ""
        return _preflight_finding("True", Explanation(Reason.PREFLIGHT_PASSED, f"{level}: all nodes passed{measured}"))
    if report.state == PreflightState.FAILED:
        message = (
            f"{level}: {report.message}; the check is repeated after a change of the spec, or else after 20 s, and "
            "later every five minutes. Fix this, delete the pod to replace its node, or set spec.preflight to None; "
            "groups wait until then"
        )
        return _preflight_finding("False", Explanation(Reason.PREFLIGHT_FAILED, message))
    count = f"{passed} of {pool.spec.nodes} nodes passed; " if pool.is_reserved else ""
    return _preflight_finding("False", Explanation(Reason.CHECKING, f"{level}: {count}{report.message}"))
