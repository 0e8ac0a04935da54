"""What suspended pools and groups say: the condition Suspended, and why they are not ready.

Suspended is True once nothing is left: no pod of a pool, no rank of a group. Objects that were never suspended do not
have the condition.
"""

from datetime import datetime
from functools import partial

from workergroups_api.conditions import Explanation, Finding, find
from workergroups_api.manifest import CONFIG_MAP, DEPLOYMENT, RAY_CLUSTER, RESOURCE_POOL, Manifest
from workergroups_api.report import GroupReport
from workergroups_api.resource_pool import ResourcePool
from workergroups_api.vocabulary import FINISHED, SUSPENDED, ConditionType, IdleAction, LaunchState, Reason
from workergroups_api.worker_group import WorkerGroup
from workergroups_operator.observed import NODE_GROUP_LABEL, Observed, node_group_of
from workergroups_operator.policy.bundles import Blocked
from workergroups_operator.policy.deadline import date_and_time
from workergroups_operator.policy.idle import ends_at, in_use, named_by
from workergroups_operator.policy.incarnation import FIRST
from workergroups_operator.status.conclusion import StatusInputs, finding

_suspended_finding = partial(finding, ConditionType.SUSPENDED)


def is_final(why: Explanation) -> bool:
    """Return whether waiting cannot make the object ready: only its user resumes it, or runs it again."""
    return why.reason in (*SUSPENDED, *FINISHED)


def not_ready(type_: str, why: Explanation) -> Finding:
    """Return a condition of a suspended or finished object that is not True, and decides Ready."""
    return finding(type_, "False", why, decisive=True, final=is_final(why))


def pool_suspended(pool: ResourcePool, inputs: StatusInputs) -> tuple[Finding, ...]:
    """Return the condition Suspended of a pool; none if it never was."""
    why = inputs.decisions.suspended_pools.get(pool.name)
    if why is None:
        return _resumed(pool)
    left = inputs.decisions.obstacle or inputs.failures.of(RAY_CLUSTER, DEPLOYMENT) or _what_is_left(pool, inputs)
    return (_suspended_finding("False", left) if left else _suspended_finding("True", why),)


def pool_idle(pool: ResourcePool, inputs: StatusInputs) -> tuple[Finding, ...]:
    """Return the condition Idle of a pool; none if it keeps its devices in any case."""
    idle = inputs.decisions.idle.get(pool.name)
    if idle is None:
        return ()
    if idle.since is None:
        used = in_use(pool, inputs.observed) or "it was just woken"
        return (finding(ConditionType.IDLE, "False", Explanation(Reason.IN_USE, used)),)
    when = _what_follows(pool, idle.since, inputs, is_suspended=bool(idle.suspended))
    unused = Explanation(Reason.UNUSED, f"no group wants it, and no driver is connected to its Ray cluster; {when}")
    return (finding(ConditionType.IDLE, "True", unused),)


def _what_follows(pool: ResourcePool, since: datetime, inputs: StatusInputs, *, is_suspended: bool) -> str:
    """Return what happens to a pool that is idle since then."""
    at = f"at {date_and_time(ends_at(pool, since))}"
    suspended = "it is suspended" if is_suspended else f"it will be suspended {at}"
    if pool.spec.idle is None or pool.spec.idle.action is not IdleAction.DELETE:
        return suspended
    group = named_by(pool, inputs.observed)
    if group is not None:
        return f"{suspended}, and will be deleted once no group names it, as {group} does"
    failure = inputs.failures.of(RESOURCE_POOL)
    if is_suspended and failure is not None:
        return f"{suspended}; {failure.message}"
    return f"{suspended}, and will be deleted unless a group names it" if is_suspended else f"it will be deleted {at}"


def group_suspended(
    group: WorkerGroup, report: GroupReport, unknown: Explanation | None, inputs: StatusInputs
) -> tuple[Finding, ...]:
    """Return the condition Suspended of a group; none if it never was.

    Args:
        group: The group.
        report: What the agent reports of the incarnation that begins when the group is resumed.
        unknown: Why Ray's state is unknown.
        inputs: What the earlier steps found.
    """
    if not group.spec.suspend:
        return _resumed(group)
    assignment = inputs.decisions.groups.bundles[group.name]
    if isinstance(assignment, Blocked):  # It has no room in the plan, so nothing is reported of it.
        return (_suspended_finding("False", assignment.why),)
    why = inputs.decisions.groups.suspended[group.name]
    if unknown is not None:
        return (_suspended_finding("Unknown", unknown),)
    failure = inputs.failures.of(CONFIG_MAP)
    never_ran = inputs.decisions.groups.incarnations[group.name].number == FIRST
    has_none = never_ran or inputs.observed.head is None or report.state == LaunchState.SUSPENDED
    if failure is None and has_none:
        return (_suspended_finding("True", why),)
    waiting = report.message or "waiting for the agent to report that no rank is left"
    return (_suspended_finding("False", failure or Explanation(Reason.SUSPENDING, waiting)),)


def _resumed(subject: ResourcePool | WorkerGroup) -> tuple[Finding, ...]:
    if find(subject.status.conditions, ConditionType.SUSPENDED) is None:
        return ()
    return (_suspended_finding("False", Explanation(Reason.RESUMED, "")),)


def _what_is_left(pool: ResourcePool, inputs: StatusInputs) -> Explanation | None:
    """Return what the pool still has; None if nothing is left, also of head and agent if no pool needs them."""
    observed, is_off = inputs.observed, inputs.decisions.is_off
    left = [*observed.pods, *observed.previous_pods] if is_off else _nodes_of(pool, observed)
    if left:
        node = left[0].get("spec", {}).get("nodeName")
        where = f" on node {node}" if node else ""
        are = f" and {len(left) - 1} more are" if len(left) > 1 else " is"
        name = left[0]["metadata"]["name"]
        return Explanation(Reason.SUSPENDING, f"waiting until pod {name}{where}{are} deleted")
    if is_off and observed.ray_cluster is not None:
        return Explanation(Reason.SUSPENDING, f"waiting until RayCluster {observed.key.name} is deleted")
    return None


def _nodes_of(pool: ResourcePool, observed: Observed) -> list[Manifest]:
    name = node_group_of(pool)
    previous = (
        pod for pod in observed.previous_pods if pod["metadata"].get("labels", {}).get(NODE_GROUP_LABEL) == name
    )
    return [*observed.all_pods_of(name), *previous]
