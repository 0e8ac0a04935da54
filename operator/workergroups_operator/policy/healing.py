"""Whether and when a group whose ranks failed gets new ones, by its failure policy and the restarts that it has had."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from workergroups_api.backoff import Backoff
from workergroups_api.failure_policy import FailurePolicy, RestartHistory
from workergroups_api.vocabulary import RankEnd, Restart

NO_RESTARTS = RestartHistory()
LONGEST_PAUSE_SECONDS = 300.0
# The next launch waits for a node after these, so that restarts cannot follow each other closely.
_WAITS_FOR_NODE = {RankEnd.NODE_LOST, RankEnd.PREEMPTED}


@dataclass(frozen=True)
class Healing:
    """What follows from the failure of an incarnation."""

    # When its ranks are recreated; None if they are not.
    restart_at: datetime | None
    # Whether the restart counts towards the budget.
    counts: bool = True
    # How many restarts have counted within the window before.
    spent: int = 0

    def is_due(self, now: datetime) -> bool:
        """Return whether the ranks must be recreated now."""
        return self.restart_at is not None and now >= self.restart_at


def healing(policy: FailurePolicy, history: RestartHistory, reasons: Collection[str], failed_at: datetime) -> Healing:
    """Return what follows from ranks that failed for these reasons, as far as the operator knows since `failed_at`.

    It depends on no other time, so a final failure stays final when the window has passed.
    """
    counts = set(policy.unlimited_for).isdisjoint(reasons)
    spent = len(_within(history.recent, policy, failed_at))
    if policy.restart is Restart.NEVER or (counts and spent >= policy.max_restarts):
        return Healing(None, counts, spent)
    pause = timedelta(seconds=_pause(policy, reasons, spent, counts=counts))
    # Whole seconds, as messages and statuses have them.
    at = (failed_at + pause).replace(microsecond=0) if pause else failed_at
    return Healing(at, counts, spent)


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
