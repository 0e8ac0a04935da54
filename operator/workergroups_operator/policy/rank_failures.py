"""The failure policy: which ranks of a group have failed and why, and whether, when and how they are recreated.

Ray knows why a process ended, and Kubernetes why a pod did. A rank that ended with its pod has the pod's reason. One
that died before its pod began to leave keeps its own.

With `failurePolicy.restart: Rank`, failed ranks are recreated alone, while the others of their incarnation keep
running. The birth of a rank is the number of the restart that created it. The plan has the births, and each report says
which it knows of. So a report of a death that was answered already counts no second time.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice

from workergroups_api.failure_policy import FailurePolicy, KeptFailure, RestartHistory
from workergroups_api.manifest import Manifest
from workergroups_api.plan import MAX_BIRTHS, MAX_RANKS
from workergroups_api.report import GroupReport, HangReport, RankFailure
from workergroups_api.vocabulary import Container, LaunchState, RankEnd, Restart
from workergroups_common.backoff import Backoff
from workergroups_common.ranges import numbers, without
from workergroups_operator.observed import deleted_at, disruption

# Ends that Ray reports of ranks whose pod is evicted, deleted or out of memory.
_ENDS_WITH_POD = (RankEnd.PROCESS_EXITED, RankEnd.PROCESS_DIED, RankEnd.NODE_LOST, RankEnd.REMOVED)
# Why pods end.
_ENDS_OF_PODS = (RankEnd.PREEMPTED, RankEnd.NODE_LOST, RankEnd.OUT_OF_MEMORY)
# By how much the clocks of nodes, API server and operator may differ.
_CLOCK_DIFFERENCE = timedelta(seconds=2)
NO_RESTARTS = RestartHistory()
LONGEST_PAUSE_SECONDS = 300.0
# The next launch waits for a node after these, so that restarts cannot follow each other closely.
_WAITS_FOR_NODE = {RankEnd.NODE_LOST, RankEnd.PREEMPTED}
# Rank -> with which restart of the group it was last created alone.
Births = Mapping[int, int]
NO_BIRTHS: Births = {}


@dataclass(frozen=True)
class GroupFailure:
    """What is known of an incarnation of which ranks have failed."""

    incarnation: int
    # The first ten, in rank order.
    ranks: tuple[RankFailure, ...]
    # All of them, or more than MAX_BIRTHS.
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
    report: GroupReport,
    pods: Sequence[Manifest],
    restart: Restart = Restart.GROUP,
    births: Births = NO_BIRTHS,
    kept: Sequence[KeptFailure] = (),
) -> GroupFailure | None:
    """Return what failed according to a report that counts; None if nothing did.

    `kept` are the failures that are known already.

    Ranks that are restarted alone wait for no others. So of those, each that has not returned from a call hangs.
    """
    if not report.failures and report.hang is None:
        return None
    found = {pod["metadata"]["name"]: pod for pod in pods}
    failures, all_ = report.failures, report.failed
    if report.hang is not None and not failures:
        all_ = report.hang.ranks if restart is Restart.RANK else report.hang.suspects or report.hang.ranks
        failures = _hung(report.hang, all_, births)
    known = {(each.rank, each.birth): each for each in kept if each.incarnation == report.incarnation}
    failed = tuple(
        _classified(each, found.get(each.pod or ""), known.get((each.rank, each.birth))) for each in failures
    )
    named = {failure.pod for failure in failed}
    nodes = {name: pod.get("spec", {}).get("nodeName") for name, pod in found.items() if name in named}
    nodes = {name: node for name, node in nodes.items() if node}
    # Of more ranks the plan has no births: then all ranks are recreated.
    ranks = frozenset(islice(numbers(all_, MAX_RANKS), MAX_BIRTHS + 1))
    return GroupFailure(report.incarnation, failed, ranks, nodes, is_paused=bool(report.pauses))


def _hung(hang: HangReport, ranks: str, births: Births) -> tuple[RankFailure, ...]:
    """Return a call that hangs as the failure of one rank, the first of these."""
    rank = next(numbers(ranks, MAX_RANKS), 0)
    failure = RankFailure(rank=rank, birth=births.get(rank), reason=RankEnd.HUNG, message=hang.message, pod=hang.pod)
    return (failure,)


def _classified(failure: RankFailure, pod: Manifest | None, known: KeptFailure | None) -> RankFailure:
    """Return the failure with the pod's reason if the rank ended with its pod."""
    if failure.reason not in _ENDS_WITH_POD or failure.pod is None:
        return failure
    for reason, message in _ends_of(pod, failure, known):
        return failure.model_copy(update={"reason": reason, "message": message})
    if known is not None and known.reason in _ENDS_OF_PODS:
        return failure.model_copy(update={"reason": known.reason, "message": known.message})
    return failure


def _ends_of(pod: Manifest | None, failure: RankFailure, known: KeptFailure | None) -> Iterator[tuple[RankEnd, str]]:
    """Yield why the pod, or its Ray container, ended, the most telling reason first."""
    if pod is None:
        if known is None:
            yield RankEnd.NODE_LOST, "its pod was deleted"
        return
    latest = None if known is None else known.time + _CLOCK_DIFFERENCE
    if (evicted := disruption(pod)) is not None and _is_by(evicted.since, latest):
        yield RankEnd.PREEMPTED, f"its pod was evicted: {evicted.why}"
    if "deletionTimestamp" in pod["metadata"] and _is_by(deleted_at(pod), latest):
        yield RankEnd.NODE_LOST, "its pod was deleted"
    elif failure.reason == RankEnd.NODE_LOST and _is_out_of_memory(pod):
        yield RankEnd.OUT_OF_MEMORY, "the kubelet ended its container, which exceeded its memory limit"


def _is_by(time: datetime | None, latest: datetime | None) -> bool:
    return time is None or latest is None or time <= latest


def _is_out_of_memory(pod: Manifest) -> bool:
    """Return whether the latest end of the pod's Ray container was for memory."""
    for container in pod.get("status", {}).get("containerStatuses") or ():
        ends = [container.get(key, {}).get("terminated", {}) for key in ("state", "lastState")]
        if container["name"] == Container.WORKER:
            return next((end.get("reason") == "OOMKilled" for end in ends if end), False)
    return False


@dataclass(frozen=True)
class FailureResponse:
    """What follows from a failure of ranks."""

    failure: GroupFailure
    policy: FailurePolicy
    # Since when the operator knows of the failure.
    failed_at: datetime
    # When the ranks are recreated; None if they are not.
    restart_at: datetime | None
    # Whether the restart counts towards the budget.
    counts: bool
    # How many restarts have counted within the window before.
    spent: int
    # The births of the incarnation once the failed ranks are recreated alone; None if all ranks are recreated.
    births: Births | None = None

    @property
    def is_final(self) -> bool:
        """Whether the ranks stay as they are."""
        return self.restart_at is None and not self.failure.is_paused

    def is_due(self, now: datetime) -> bool:
        """Return whether the ranks must be recreated now."""
        return self.restart_at is not None and now >= self.restart_at and not self.failure.is_paused


def failure_response(
    failure: GroupFailure,
    policy: FailurePolicy,
    history: RestartHistory,
    now: datetime,
    births: Births = NO_BIRTHS,
    world_size: int = 0,
) -> FailureResponse:
    """Return what follows from a failure of an incarnation with these births.

    It depends on the time since when the operator knows of the failure, which the history has, and on no other. So a
    final failure stays final when the window has passed.
    """
    failed_at = history.failed_at or now.replace(microsecond=0)
    counts = set(policy.unlimited_for).isdisjoint(failure.reasons)
    spent = len(_within(history.recent, policy, failed_at))
    at = None
    if policy.restart is not Restart.NEVER and (spent < policy.max_restarts or not counts):
        pause = timedelta(seconds=_pause(policy, failure.reasons, spent, counts=counts))
        # Whole seconds, as messages and statuses have them.
        at = (failed_at + pause).replace(microsecond=0) if pause else failed_at
    is_alone = policy.restart is Restart.RANK
    following = births_after(births, failure.numbers, world_size, history.count + 1) if is_alone else None
    return FailureResponse(failure, policy, failed_at, at, counts, spent, following)


def _pause(policy: FailurePolicy, reasons: Collection[str], spent: int, *, counts: bool) -> float:
    if not _WAITS_FOR_NODE.isdisjoint(reasons) or policy.backoff_seconds == 0:
        return 0.0
    longest = max(LONGEST_PAUSE_SECONDS, policy.backoff_seconds)
    return Backoff(policy.backoff_seconds, longest).after(spent if counts else 1)


def restarted(history: RestartHistory, policy: FailurePolicy, now: datetime, *, counts: bool) -> RestartHistory:
    """Return the history with a restart that happens now."""
    recent = _within(history.recent, policy, now)
    if counts:
        recent = (*recent, now.replace(microsecond=0))[-policy.max_restarts :]  # the plan has room for no more
    return RestartHistory(count=history.count + 1, recent=recent)


def stored(history: RestartHistory) -> RestartHistory | None:
    """Return the history as status and plan store it: None if there is nothing to remember."""
    return None if history == NO_RESTARTS else history


def _within(times: tuple[datetime, ...], policy: FailurePolicy, now: datetime) -> tuple[datetime, ...]:
    window = timedelta(seconds=policy.window_seconds)
    return tuple(time for time in times if now - time < window)


def births_after(births: Births, failed: Collection[int], world_size: int, number: int) -> Births | None:
    """Return the births once the failed ranks are recreated alone by the restart of this number.

    None if they cannot be: no rank is left that would keep what it has in memory, or more have failed than the plan has
    room for. The births of the ranks that were recreated longest ago are forgotten.
    """
    if not failed or len(failed) >= min(world_size, MAX_BIRTHS + 1):
        return None
    others = sorted((birth, rank) for rank, birth in births.items() if rank not in failed)
    kept = others[max(0, len(others) + len(failed) - MAX_BIRTHS) :]
    return {rank: birth for birth, rank in kept} | dict.fromkeys(failed, number)


def present_report(report: GroupReport, births: Births, world_size: int = MAX_RANKS) -> GroupReport:
    """Return what a report says of the ranks that there should be: nothing about those that were recreated since."""
    gone = _born_after(births, report.birth)
    hang = report.hang
    if hang is not None and (recreated := _born_after(births, hang.birth)) and _is_within(hang.ranks, recreated):
        hang = None
    if not gone:
        return report if hang is report.hang else report.model_copy(update={"hang": hang})
    ready, not_ready = without(report.ready, gone, world_size)
    is_launched = report.state == LaunchState.LAUNCHED
    return report.model_copy(
        update={
            "state": LaunchState.LAUNCHING.value if is_launched else report.state,
            "created": max(0, report.created - len(gone)),
            "ready_count": max(0, report.ready_count - not_ready),
            "ready": ready,
            "failed": without(report.failed, gone, world_size)[0],
            "failures": tuple(each for each in report.failures if each.rank not in gone),
            "paused": without(report.paused, gone, world_size)[0],
            "pauses": tuple(each for each in report.pauses if each.rank not in gone),
            "hang": hang,
        }
    )


def is_outdated(report: GroupReport, births: Births) -> bool:
    """Return whether ranks were recreated alone since the report."""
    return any(birth > (report.birth or 0) for birth in births.values())


def _is_within(text: str, ranks: Collection[int]) -> bool:
    return not without(text, ranks, MAX_RANKS)[0]


def _born_after(births: Births, known: int | None) -> set[int]:
    return {rank for rank, birth in births.items() if birth > (known or 0)}
