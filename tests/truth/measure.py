"""One fault, once: cause it, watch, undo it, judge."""

from __future__ import annotations

import time
from contextlib import ExitStack

from tools.console import say

from . import machine
from .faults import Fault, NoFault
from .judge import TRUE, Verdict, first_denial, relapses, seconds_not_true, untruth
from .stage import Answer, Stage
from .watch import GROUPS, POOLS, Seen

# After this much more than its bound, a fault counts as never noticed.
PATIENCE_SECONDS = 20
# For how long to watch a fault after it was noticed: Ready must not become True meanwhile.
HELD_SECONDS = 4
UNKNOWN_SECONDS = 120


def measure(stage: Stage, fault: Fault | NoFault) -> Verdict:
    """Try a fault on a pool and a group that are ready, and leave them ready."""
    answer = stage.restore(recovers=False)
    say(f"{fault.title} ...")
    verdict = _suffer(stage, fault, answer) if isinstance(fault, Fault) else _stay_calm(stage, fault, answer)
    seconds = "never noticed" if verdict.seconds is None else f"{verdict.seconds:.1f} s"
    say(f"{fault.title}: {'; '.join((seconds, *verdict.wrong))}")
    return verdict


def _suffer(stage: Stage, fault: Fault, before: Answer) -> Verdict:
    lives = {plural: stage.latest(plural).life for plural in (POOLS, GROUPS)}
    with ExitStack() as undo:
        began = time.monotonic()
        fault.act(stage, before, undo)
        struck = time.monotonic()

        def is_said() -> bool:
            return all(first_denial(stage.history(plural, began)) for plural in fault.says_so)

        if stage.watch.wait(is_said, fault.bound + PATIENCE_SECONDS):
            time.sleep(HELD_SECONDS)
        undone = time.monotonic()
        histories = {plural: stage.history(plural, began) for plural in fault.says_so}
    _tell(histories, struck)
    wrong = [] if fault.ends else _flaps(histories, undone)
    changes = stage.changes
    after = stage.restore(recovers=fault.comes_back)
    if fault.comes_back and stage.changes > changes:
        wrong.append("the group did not become ready again automatically")
    elif fault.keeps_ranks and after != before:
        wrong.append("the ranks are not the same as before")
    for plural in fault.ends:
        history = stage.history(plural, began)
        wrong += [_lie(seen, struck) for seen in relapses(history, lives[plural])]
    if fault.ends:
        wrong += _too_early(stage, after, struck)
    return Verdict(untruth(histories.values(), struck), tuple(wrong))


def _stay_calm(stage: Stage, fault: NoFault, before: Answer) -> Verdict:
    began = time.monotonic()
    with ExitStack() as undo:
        fault.act(stage, before, undo)
    stage.watch.wait(lambda: False, fault.watched_seconds)

    def all_true() -> bool:
        return all(stage.latest(plural).status == TRUE for plural in (POOLS, GROUPS))

    stage.watch.wait(all_true, UNKNOWN_SECONDS if fault.may_be_unknown else 0)
    ended = time.monotonic()
    histories = {plural: stage.history(plural, began) for plural in (POOLS, GROUPS)}
    _tell(histories, began)
    allowed = {TRUE, "Unknown"} if fault.may_be_unknown else {TRUE}
    wrong = [_lie(seen, began) for history in histories.values() for seen in history if seen.status not in allowed]
    if not all_true():
        wrong.append("Ready did not become True again")
    elif stage.ask() != before:
        wrong.append("the ranks are not the same as before")
    return Verdict(max(seconds_not_true(history, ended) for history in histories.values()), tuple(wrong))


def _flaps(histories: dict[str, list[Seen]], until: float) -> list[str]:
    """Return where Ready became True while the fault lasted."""
    found = []
    for history in histories.values():
        denial = first_denial(history)
        found += [seen for seen in history if denial and seen.at > denial.at and seen.status == TRUE]
    return [_lie(seen, until) for seen in found if seen.at < until]


def _too_early(stage: Stage, after: Answer, struck: float) -> list[str]:
    """Return what is wrong with the Ready=True after the fault, according to the ranks."""
    ready = stage.latest(GROUPS)
    if ready.incarnation != after.incarnation:
        return [f"incarnation {after.incarnation} answers, but the status names {ready.incarnation}"]
    claims = [seen for seen in stage.history(GROUPS, struck) if seen.status == TRUE and seen.life == ready.life]
    last_born = max(rank.born for rank in after.ranks)
    # The ranks' clock is this machine's on the local cluster only.
    if machine.is_local() and claims and claims[0].wall < last_born:
        return [f"Ready {last_born - claims[0].wall:.1f} s before the last rank was created"]
    return []


def _lie(seen: Seen, since: float) -> str:
    return f"Ready {seen.status} ({seen.reason}) at {seen.at - since:+.1f} s"


def _tell(histories: dict[str, list[Seen]], since: float) -> None:
    for plural, history in histories.items():
        told: list[tuple[str, str]] = []
        for seen in history:
            words = f"{seen.status} {seen.reason}"
            if not told or told[-1][1] != words:
                told.append((f"{seen.at - since:+.1f}", words))
        say(f"  {plural}: {', '.join(' '.join(each) for each in told) or 'no event'}")
