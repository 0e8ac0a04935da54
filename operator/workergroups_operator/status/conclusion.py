"""What the conditions of pools and groups rest on, the one way to sum them up, and the update that writes them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from workergroups_api import names
from workergroups_api.conditions import Condition, ConditionStatus, Explanation, Finding, merge
from workergroups_api.failure_policy import KeptFailure
from workergroups_api.heads import HEAD_AWAY_SECONDS
from workergroups_api.manifest import DEPLOYMENT, Kind, Manifest
from workergroups_api.model import ApiModel, ApiObject
from workergroups_api.resource_pool import ResourcePool
from workergroups_api.vocabulary import Component, ConditionType, Reason
from workergroups_api.vouching import EVERY, doubt
from workergroups_api.worker_group import WorkerGroup
from workergroups_operator.decisions import Decisions
from workergroups_operator.failures import Failures
from workergroups_operator.observed import Observed
from workergroups_operator.policy.agent_liveness import AgentState
from workergroups_operator.policy.deadline import Wait, wait_for_ready
from workergroups_operator.policy.generated_names import without_generated_names
from workergroups_operator.policy.pod_trouble import first_trouble
from workergroups_operator.status.progressing import failed, progressing
from workergroups_operator.templates import Templates

_MAY_BE = "its pod is gone or hangs, its node is cut off, Ray's GCS does not answer, or a webhook delays its Lease"


@dataclass(frozen=True)
class StatusInputs:
    """What the earlier steps of a reconcile found out about one cluster."""

    observed: Observed
    templates: Templates
    decisions: Decisions
    failures: Failures
    now: datetime


@dataclass(frozen=True)
class Conclusion:
    """Conditions, and the deadline that changes them without an event."""

    conditions: tuple[Condition, ...]
    ready: Condition
    # The finding that keeps Ready from being True, or the last one.
    weakest: Finding
    deadline: datetime | None
    requeue_after: float


@dataclass(frozen=True)
class StatusUpdate:
    """An object, and the operator's part of its status as it was and as it should be."""

    kind: Kind
    metadata: Manifest
    before: ApiModel | None
    after: ApiModel
    ready_before: Condition | None
    ready: Condition
    # False if the operator cannot read the object: its schema may refuse any status of it.
    is_readable: bool = True
    # Whether the reason of `Ready` is a cause, and not only what follows from one, or is waited for.
    is_cause: bool = False
    # What else events should report; the reason of each is an `EventReason`.
    news: tuple[Explanation, ...] = ()
    # For the metrics: a pool's devices by state, None if that is unknown; a group's oldest call, and new failures.
    devices: Mapping[str, int] | None = None
    oldest_call: datetime | None = None
    new_failures: tuple[KeptFailure, ...] = ()


def finding(type_: str, status: ConditionStatus, why: Explanation, **more: bool) -> Finding:
    """Return a finding from an explanation."""
    return Finding(type=type_, status=status, reason=why.reason, message=why.message, **more)


def conclude(
    subject: ResourcePool | WorkerGroup,
    chain: Sequence[Finding],
    aside: Sequence[Finding],
    now: datetime,
    override: Explanation | None = None,
    tried_since: datetime | None = None,
    complete: Explanation | None = None,
) -> Conclusion:
    """Return the conditions: the chain of findings, `Ready`, which sums it up, what follows from that, and those aside.

    `Ready` is the first decisive finding of the chain, or else the first that is not True, or else the last. While it
    is True, `override` takes the place of its reason and message. A deadline before `tried_since` was one of an earlier
    try. An object that is `complete` is ready, although nothing of it runs.
    """
    weak = [link for link in chain if link.status != "True"]
    weakest = next((link for link in weak if link.decisive), weak[0] if weak else chain[-1])
    ready = weakest.model_copy(update={"type": ConditionType.READY})
    if override is not None and ready.status == "True":
        ready = ready.model_copy(update={"reason": override.reason, "message": override.message})
    if complete is not None:
        ready = finding(ConditionType.READY, "True", complete)
    wait = None if ready.status == "True" or ready.final else _wait(subject, now, tried_since)
    findings = (*chain, ready, progressing(ready, wait, now), *failed(ready), *aside)
    conditions = merge(subject.status.conditions, findings, subject.generation, now)
    summed = next(condition for condition in conditions if condition.type == ConditionType.READY)
    requeue_after = float("inf") if wait is None or wait.is_over(now) else wait.seconds_left(now)
    return Conclusion(conditions, summed, weakest, wait.until if wait else None, requeue_after)


def _wait(subject: ResourcePool | WorkerGroup, now: datetime, tried_since: datetime | None) -> Wait:
    before = subject.status
    deadline_before = before.deadline if before.observed_generation == subject.generation else None
    seconds = subject.spec.progress_deadline_seconds
    if deadline_before and tried_since and deadline_before - timedelta(seconds=seconds) < tried_since:
        deadline_before = None  # Each try has the whole time.
    return wait_for_ready(deadline_before, seconds, now)


def agent_lost(inputs: StatusInputs) -> Explanation:
    """Explain that the state is unknown, and why, as far as the operator can see."""
    trouble = agent_trouble(inputs.observed)
    seen = _not_running(inputs.observed.pods_of(Component.AGENT)) or _MAY_BE
    why = trouble.message if trouble else inputs.observed.agent.doubts.get(EVERY, seen)
    return Explanation(
        Reason.AGENT_LOST,
        f"there has been no heartbeat of the agent for some seconds, so the state is unknown: {why}; ranks that ran "
        "keep running",
    )


def head_away(inputs: StatusInputs) -> Explanation:
    """Explain that the state is unknown until the head has started again."""
    trouble = first_trouble(inputs.observed.pods_of(Component.HEAD))
    why = f": {trouble.message}" if trouble else ""
    return Explanation(
        Reason.HEAD_AWAY,
        f"Ray's head starts again, so the state is unknown{why}; ranks that ran keep running, and end if it is not "
        f"back after {HEAD_AWAY_SECONDS / 60:g} minutes",
    )


def _not_running(pods: Sequence[Manifest]) -> str | None:
    """Return what the operator sees of the agent's pod, such as while it is replaced; None if it runs."""
    if not pods:
        return "it has no pod at the moment"
    starting = [pod["metadata"]["name"] for pod in pods if pod.get("status", {}).get("phase") == "Pending"]
    return f"its pod {starting[0]} is starting" if starting else None


def unvouched(subject: ApiObject, inputs: StatusInputs) -> Explanation | None:
    """Return why the state of an object in Ray is unknown; None if the agent vouches for what it last reported."""
    agent = inputs.decisions.agent
    if agent.state is AgentState.LOST:
        return agent_lost(inputs)
    if agent.state is AgentState.HEAD_AWAY:
        return head_away(inputs)
    why = doubt(subject.uid, inputs.observed.agent.doubts)
    if why is None or not agent.is_believed:
        return None
    return Explanation(Reason.STATUS_NOT_WRITTEN, f"Ray's state is unknown: {why}; ranks that ran keep running")


def agent_trouble(observed: Observed) -> Explanation | None:
    """Return what keeps the agent's pod from running; None if the operator sees nothing."""
    trouble = first_trouble(observed.pods_of(Component.AGENT))
    if trouble:
        return Explanation(trouble.reason, f"agent: {trouble.message}")
    deployment = observed.child(DEPLOYMENT, names.agent_name(observed.key.name)) or {}
    for condition in deployment.get("status", {}).get("conditions") or ():
        if condition["type"] == "ReplicaFailure" and condition["status"] == "True":
            why = without_generated_names(str(condition.get("message", "")))
            return Explanation(Reason.PODS_REFUSED, f"agent: {why}")
    return None
