"""Which ranks of a group have failed, and why, from the agent's report and the pods.

Ray knows why a process ended, and Kubernetes why a pod did. For a rank whose pod is leaving, the pod's reason counts.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from workergroups_api.manifest import Manifest
from workergroups_api.ranges import numbers
from workergroups_api.report import GroupReport, HangReport, RankFailure
from workergroups_api.vocabulary import Container, RankEnd, Restart
from workergroups_operator.observed import disruption
from workergroups_operator.policy.births import NO_BIRTHS, Births

# Ends that Ray reports of ranks whose pod is evicted, deleted or out of memory.
_ENDS_WITH_POD = (RankEnd.PROCESS_EXITED, RankEnd.PROCESS_DIED, RankEnd.NODE_LOST, RankEnd.REMOVED)


@dataclass(frozen=True)
class GroupFailure:
    """What is known of an incarnation of which ranks have failed."""

    incarnation: int
    # The first ten, in rank order.
    ranks: tuple[RankFailure, ...]
    # All of them.
    numbers: frozenset[int] = frozenset()
    # Pod -> Kubernetes node.
    nodes: Mapping[str, str] = field(default_factory=dict)
    # A rank waits for a person with a debugger: what it shows must not be lost.
    is_paused: bool = False

    @property
    def reasons(self) -> frozenset[str]:
        """The reasons of all of these ranks."""
        return frozenset(rank.reason for rank in self.ranks)


def group_failure(
    report: GroupReport, pods: Sequence[Manifest], restart: Restart = Restart.GROUP, births: Births = NO_BIRTHS
) -> GroupFailure | None:
    """Return what failed according to a report that counts; None if nothing did.

    Ranks that are restarted alone wait for no others. So of those, each that has not returned from a call hangs.
    """
    if not report.failures and report.hang is None:
        return None
    found = {pod["metadata"]["name"]: pod for pod in pods}
    failures, all_ = report.failures, report.failed
    if report.hang is not None and not failures:
        all_ = report.hang.ranks if restart is Restart.RANK else report.hang.suspects or report.hang.ranks
        failures = _hung(report.hang, all_, births)
    failed = tuple(_classified(failure, found.get(failure.pod or "")) for failure in failures)
    named = {failure.pod for failure in failed}
    nodes = {name: pod.get("spec", {}).get("nodeName") for name, pod in found.items() if name in named}
    known = {name: node for name, node in nodes.items() if node}
    ranks = frozenset(numbers(all_))
    return GroupFailure(report.incarnation, failed, ranks, known, is_paused=bool(report.pauses))


def _hung(hang: HangReport, ranks: str, births: Births) -> tuple[RankFailure, ...]:
    """Return a call that hangs as the failure of one rank, the first of these."""
    rank = next(iter(numbers(ranks)), 0)
    failure = RankFailure(rank=rank, birth=births.get(rank), reason=RankEnd.HUNG, message=hang.message, pod=hang.pod)
    return (failure,)


def _classified(failure: RankFailure, pod: Manifest | None) -> RankFailure:
    """Return the failure with the pod's reason if the rank ended with its pod."""
    if failure.reason not in _ENDS_WITH_POD or failure.pod is None:
        return failure
    for reason, message in _ends_of(pod, failure):
        return failure.model_copy(update={"reason": reason, "message": message})
    return failure


def _ends_of(pod: Manifest | None, failure: RankFailure) -> Iterator[tuple[RankEnd, str]]:
    """Yield why the pod, or its Ray container, ended, the most telling reason first."""
    if pod is not None and (why := disruption(pod)) is not None:
        yield RankEnd.PREEMPTED, f"its pod was evicted: {why}"
    if pod is None or "deletionTimestamp" in pod["metadata"]:
        yield RankEnd.NODE_LOST, "its pod was deleted"
    elif failure.reason == RankEnd.NODE_LOST and _is_out_of_memory(pod):
        yield RankEnd.OUT_OF_MEMORY, "the kubelet ended its container, which exceeded its memory limit"


def _is_out_of_memory(pod: Manifest) -> bool:
    """Return whether the latest end of the pod's Ray container was for memory."""
    for container in pod.get("status", {}).get("containerStatuses") or ():
        ends = [container.get(key, {}).get("terminated", {}) for key in ("state", "lastState")]
        if container["name"] == Container.WORKER:
            return next((end.get("reason") == "OOMKilled" for end in ends if end), False)
    return False
