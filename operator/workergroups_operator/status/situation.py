"""What the status functions of pools and of groups both look at, and the one way to sum up a chain of findings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from workergroups_api import names
from workergroups_api.conditions import Condition, Finding, find, merge
from workergroups_api.model import ApiObject
from workergroups_operator.apply import ApplyFailure
from workergroups_operator.observe import Observed
from workergroups_operator.policy.agent_liveness import AgentLiveness, agent_liveness
from workergroups_operator.policy.deadline import clock, wait_for_ready
from workergroups_operator.policy.seating import Seating
from workergroups_operator.policy.sharing import Sharing


@dataclass(frozen=True)
class Situation:
    """One cluster at one time."""

    observed: Observed
    sharing: Sharing
    seating: Mapping[str, Seating]
    failure: ApplyFailure | None
    now: datetime

    @cached_property
    def agent(self) -> AgentLiveness:
        """Whether the agent's reports can be believed."""
        deployment = self.observed.children.get(("Deployment", names.agent_name(self.observed.key.name)))
        return agent_liveness(deployment, self.observed.pods_of("head"), self.now)


@dataclass(frozen=True)
class Conclusion:
    """Conditions, and when a deadline makes them change without any event."""

    conditions: tuple[Condition, ...]
    look_again_seconds: float
    # The chain's first link that is not true, or its last one.
    weakest: Finding

    @property
    def ready(self) -> Condition:
        """The condition that sums up."""
        return self.conditions[-1]


def conclude(
    subject: ApiObject,
    previous: Sequence[Condition],
    chain: Sequence[Finding],
    deadline_seconds: int,
    now: datetime,
) -> Conclusion:
    """The chain and `Ready`, which is the chain's first link that is not true, or its last one.

    A wait that is longer than the deadline has a reason of its own, and still says what it waits for.
    """
    weakest = next((finding for finding in chain if finding.status != "True"), chain[-1])
    look_again = float("inf")
    ready = weakest.model_copy(update={"type": "Ready"})
    if ready.status != "True" and not ready.final:
        created = datetime.fromisoformat(subject.metadata["creationTimestamp"])
        wait = wait_for_ready(created, find(previous, "Ready"), deadline_seconds, now)
        if wait.is_over(now):
            late = f"not ready within {deadline_seconds} s, by {clock(wait.until)}: {ready.message}"
            ready = ready.model_copy(update={"reason": "DeadlineExceeded", "message": late})
        else:
            look_again = wait.seconds_left(now)
            waiting = f"{ready.message} (deadline {clock(wait.until)})"
            ready = ready.model_copy(update={"message": waiting})
    return Conclusion(merge(previous, (*chain, ready), subject.generation, now), look_again, weakest)
