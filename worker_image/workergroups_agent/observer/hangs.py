"""Find calls that hang, and who is suspect.

A call hangs if the observer has seen it in flight for longer than `hangSeconds`, by its own clock: it compares the
clocks of no two machines. Then the executor has the stacks of all ranks of the group written, and a hang is reported
once these are known, or have not come in time. What comes later still corrects the report. The records in the GCS
survive this process.
"""

import logging
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from workergroups.ray_private.calls_in_flight import CallInFlight, CallReader, Reading
from workergroups.stacks.rank_stack import MAX_TEXT, Doing
from workergroups_agent.hang_records import Hang, HangName, HangRecords, OnNode
from workergroups_agent.launch_state import GroupKey, key_of, ranks_of
from workergroups_agent.moments import moment
from workergroups_agent.observer.hung_calls import (
    Shown,
    by_actor,
    calls_of,
    hang_report,
    is_possible,
    oldest_call,
    returned_calls,
    shown_by,
)
from workergroups_agent.ray_state import RayState
from workergroups_api.plan import ClusterPlan, PlannedGroup
from workergroups_api.report import HangReport, OldestCall
from workergroups_common.text import plain

LOGGER = logging.getLogger(__name__)
# How often to look at calls. The GCS needs time for each look, in proportion to the events that it keeps. So there is a
# pause of a multiple of that time: a long one, unless a call is late or will be soon.
LOOK_SECONDS = 1.0
PAUSE, SHORT_PAUSE = 20.0, 3.0
# Of clusters in which no call can hang, since no group has `hangSeconds`.
LONG_SECONDS, LONG_PAUSE = 15.0, 60.0
SOON_SECONDS = 15.0
# After a look that failed.
RETRY_SECONDS = 5.0
# What has no stacks after the first time is reported without. On a busy node, Ray needs longer to start the task that
# takes them, so until the second time they correct the report.
STACKS_SECONDS, LATE_SECONDS = 6.0, 120.0
# Ray's processes report a call within a second of its begin. Only then is it known which calls the stacks show.
SETTLED_SECONDS = 1.2
# Calls of one method begin on all ranks at about the same time, and are seen within two seconds.
TOGETHER_SECONDS = 3.0
# If other calls hang than before, the stacks are taken again, but not more often than this.
AGAIN_SECONDS = 10.0


@dataclass
class _Found:
    """A hang that was found, and since when its stacks have been wanted, by the observer's clock."""

    name: HangName
    hang: Hang
    asked: float
    # What the nodes have answered, by node id, and how many of these answers the report has.
    known: dict[str, OnNode] = field(default_factory=dict)
    reported: int = 0
    # Since when all have answered, or need not be waited for any longer.
    complete: float | None = None
    # Whether the report stays as it is.
    is_final: bool = False


class HangWatch:
    """Watches the calls of groups: which is the oldest, and, of groups that have `hangSeconds`, which hang."""

    def __init__(
        self, hang_records: HangRecords, calls: CallReader, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._records, self._calls, self._clock = hang_records, calls, clock
        self._next = -RETRY_SECONDS
        self._told = ""
        # Since when each call has been in flight, by Ray's id of it.
        self._seen: dict[str, float] = {}
        # Calls that have returned, as the stacks show: Ray has not heard of it, because the caller died.
        self._returned: set[str] = set()
        # A reading that is under way, and when it began.
        self._reading: tuple[Reading, float] | None = None
        # When the latest complete reading began, and the calls that were in flight.
        self._asked = 0.0
        self._in_flight: dict[GroupKey, dict[CallInFlight, int]] = {}
        # None until the hangs that an earlier observer found have been read.
        self._found: dict[GroupKey, _Found] | None = None
        self._reports: dict[GroupKey, HangReport] = {}
        # The oldest calls, by the UID and incarnation of their groups.
        self.oldest: Mapping[GroupKey, OldestCall] = {}

    def look(self, plan: ClusterPlan, state: RayState) -> Mapping[GroupKey, HangReport]:
        """Return the hangs to report, by UID and incarnation."""
        groups = {key_of(group): group for group in plan.groups if group.session == state.session}
        if not groups and not self._found:
            self._seen.clear()
            self.oldest = {}
            return {}
        try:
            self._look(groups, state)
        except Exception as error:  # Ray may lack the service, and users can write to the GCS
            self._next = self._clock() + RETRY_SECONDS
            self.oldest = {}
            if (name := type(error).__name__) != self._told:
                LOGGER.warning("cannot look for calls that hang: %s", name)
                self._told = name
        self.oldest = {key: call for key, call in self.oldest.items() if key in groups}
        self._reports = {key: report for key, report in self._reports.items() if _can_hang(groups.get(key))}
        return dict(self._reports)

    def _look(self, groups: Mapping[GroupKey, PlannedGroup], state: RayState) -> None:
        if self._found is None:
            self._found = self._adopt(groups)
        if self._reading is None and self._clock() >= self._next:
            self._reading = self._calls.begin(), self._clock()
        if self._reading is not None and self._reading[0].is_done:
            (reading, self._asked), self._reading = self._reading, None
            if reading.error is not None:
                raise reading.error
            self._judge(reading.calls, self._found, groups, state)
            self._next = self._asked + reading.seconds + self._pause(reading.seconds, groups)
        for key, found in self._found.items():
            if not found.is_final and _can_hang(groups.get(key)):
                self._conclude(found, groups[key], state)
        self._told = ""

    def _adopt(self, groups: Mapping[GroupKey, PlannedGroup]) -> dict[GroupKey, _Found]:
        """Return the hangs that an earlier observer found. Their calls are late, however short ago this one began."""
        now = self._clock()
        adopted = {}
        # A group has one, and users may have written any number.
        for name in {name.key: name for name in self._records.hangs(groups)}.values():
            hang = self._records.read(name)
            if hang is not None and _can_hang(groups[name.key]) and is_possible(hang, groups[name.key]):
                adopted[name.key] = _Found(name, hang, now, is_final=hang.report is not None)
                self._seen |= dict.fromkeys(hang.calls, now - (groups[name.key].hang_seconds or 0))
                if hang.report is not None:
                    self._reports[name.key] = hang.report
        self._records.remove_but([found.name for found in adopted.values()])
        return adopted

    def _pause(self, seconds: float, groups: Mapping[GroupKey, PlannedGroup]) -> float:
        """Return the pause after a look that took that long."""
        limit = min((group.hang_seconds for group in groups.values() if group.hang_seconds is not None), default=None)
        if limit is None:
            return max(LONG_SECONDS, seconds * LONG_PAUSE)
        oldest = min(self._seen.values(), default=self._clock())
        until_soon = oldest + limit - SOON_SECONDS - self._clock()
        return max(LOOK_SECONDS, min(seconds * PAUSE, max(seconds * SHORT_PAUSE, until_soon)))

    def _judge(
        self,
        calls: Iterable[CallInFlight],
        found: dict[GroupKey, _Found],
        groups: Mapping[GroupKey, PlannedGroup],
        state: RayState,
    ) -> None:
        """Begin and end hangs, given the calls that were in flight when the latest reading began."""
        now, of_actors = self._asked, by_actor(calls)
        self._in_flight = {key: calls_of(group, state, of_actors) for key, group in groups.items()}
        in_flight = {call.task_id for of_group in self._in_flight.values() for call in of_group}
        self._returned &= in_flight
        self._seen = {task_id: self._seen.get(task_id, now) for task_id in in_flight - self._returned}
        before = {key: each.name for key, each in found.items()}
        for key in found.keys() - groups.keys():
            self._end(found, key)
        for key, group in groups.items():
            self._begin_or_end(found, group, self._late(group, self._in_flight[key]), now)
        ages = {task_id: now - since for task_id, since in self._seen.items()}
        oldest = {key: oldest_call(of_group, ages) for key, of_group in self._in_flight.items()}
        self.oldest = {key: call for key, call in oldest.items() if call is not None}
        if before != {key: each.name for key, each in found.items()}:
            self._records.remove_but([each.name for each in found.values()])

    def _late(self, group: PlannedGroup, calls: Mapping[CallInFlight, int]) -> dict[CallInFlight, int]:
        """Return the calls that hang with their ranks: those that are late, and those that began along with them."""
        if (limit := group.hang_seconds) is None:
            return {}
        ages = {call: self._clock() - self._seen[call.task_id] for call in calls if call.task_id in self._seen}
        if not ages or max(ages.values()) < limit:
            return {}
        together = min(TOGETHER_SECONDS, limit / 2)
        return {call: calls[call] for call, age in ages.items() if age >= limit - together}

    def _begin_or_end(
        self, found: dict[GroupKey, _Found], group: PlannedGroup, late: Mapping[CallInFlight, int], now: float
    ) -> None:
        key = key_of(group)
        if not late:
            self._end(found, key)
            return
        calls = {call.task_id: rank for call, rank in late.items()}
        if key in found and not _is_outdated(found[key], calls, now):
            return
        first = min(late, key=lambda call: (not call.has_begun, call.since))
        hang = Hang(
            method=plain(first.method, MAX_TEXT),
            since=moment(first.since),
            calls=calls,
            birth=group.last_birth,
        )
        found[key] = _Found(HangName(key, uuid.uuid4().hex), hang, now)
        self._records.write(found[key].name, hang)

    def _end(self, found: dict[GroupKey, _Found], key: GroupKey) -> None:
        found.pop(key, None)
        self._reports.pop(key, None)

    def _conclude(self, found: _Found, group: PlannedGroup, state: RayState) -> None:
        """Report a hang if the stacks of all nodes are known, or have not come in time; again when late ones come."""
        ranks = {number: rank for number, rank in ranks_of(group, state).items() if rank.state == "ALIVE"}
        missing_nodes = {rank.node_id for rank in ranks.values()} - found.known.keys()
        if missing_nodes and (news := self._records.on_nodes(found.name, missing_nodes)):
            found.known |= news
            found.complete = None
        missing_nodes -= found.known.keys()
        waited = self._clock() - found.asked
        if missing_nodes and waited < STACKS_SECONDS:
            return
        if found.hang.report is not None and found.reported == len(found.known):
            found.is_final = not missing_nodes or waited >= LATE_SECONDS
            return
        shown = shown_by(ranks, found.known)
        if not self._is_settled(found, shown):
            return
        self._returned |= returned_calls(found.hang, self._in_flight.get(found.name.key, {}), shown)
        calls = {task_id: rank for task_id, rank in found.hang.calls.items() if task_id not in self._returned}
        found.hang = found.hang.model_copy(update={"calls": calls})
        if not calls:
            return  # the next look ends it
        pods = {number: state.pods.get(rank.node_id) for number, rank in ranks.items()}
        report = hang_report(found.hang, group.hang_seconds or 0, shown, pods)
        found.hang = found.hang.model_copy(update={"report": report})
        found.reported = len(found.known)
        self._records.write(found.name, found.hang)
        self._reports[found.name.key] = report

    def _is_settled(self, found: _Found, shown: Mapping[int, Shown]) -> bool:
        """Return whether Ray has been asked for calls since the stacks were taken, and knew those that they show."""
        found.complete = self._clock() if found.complete is None else found.complete
        # The stacks of the others have waited for those of a frozen rank.
        is_old = any(each.stack.doing is Doing.UNKNOWN for each in shown.values())
        return is_old or self._asked >= found.complete + SETTLED_SECONDS


def _can_hang(group: PlannedGroup | None) -> bool:
    return group is not None and group.hang_seconds is not None


def _is_outdated(found: _Found, calls: Mapping[str, int], now: float) -> bool:
    """Return whether these calls hang instead of those that were found, so that their stacks are needed."""
    have_all_returned = found.hang.calls.keys().isdisjoint(calls)
    return have_all_returned or (found.hang.calls != calls and now - found.asked >= AGAIN_SECONDS)
