"""Which calls of a group count, which have returned, and what to report of those that hang. Pure functions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from workergroups.ray_private.calls_in_flight import CallInFlight
from workergroups.stacks.flight_recorder import Flight
from workergroups.stacks.missing_ranks import missing_ranks
from workergroups.stacks.rank_stack import MAX_TEXT, Doing, RankStack
from workergroups.stacks.stack_groups import diagnose
from workergroups_agent.hang_records import Hang, OnNode
from workergroups_agent.launch_state import ranks_of
from workergroups_agent.moments import moment
from workergroups_agent.ray_state import RankActor, RayState
from workergroups_api.plan import PlannedGroup
from workergroups_api.report import HangReport, OldestCall
from workergroups_common.ranges import numbers, ranges
from workergroups_common.text import plain

MAX_MESSAGE = 900
# A call is old after this.
OLD_SECONDS = 60.0
NO_ANSWER = RankStack(Doing.UNKNOWN, note="its node has not answered")


@dataclass(frozen=True)
class Shown:
    """What a rank was doing, what its flight recorder says, and when that was, by the clock of its node."""

    stack: RankStack = NO_ANSWER
    flight: Flight | None = None
    taken: float = 0.0


def by_actor(calls: Iterable[CallInFlight]) -> dict[str, list[CallInFlight]]:
    """Return the calls by the actor whose method they call."""
    found: dict[str, list[CallInFlight]] = {}
    for call in calls:
        found.setdefault(call.actor_id, []).append(call)
    return found


def calls_of(
    group: PlannedGroup, state: RayState, calls: Mapping[str, Sequence[CallInFlight]]
) -> dict[CallInFlight, int]:
    """Return the group's calls in flight with their ranks, given all by actor; none while a rank waits for a debugger.

    A call that has not begun counts if its rank runs no other: the rank may be frozen.
    """
    if not calls:
        return {}
    numbers = {rank.actor_id: number for number, rank in ranks_of(group, state).items() if rank.state == "ALIVE"}
    if any(actor_id in state.pauses for actor_id in numbers):
        return {}
    own = [call for actor_id in numbers for call in calls.get(actor_id, ())]
    busy = {call.actor_id for call in own if call.has_begun}
    first: dict[str, CallInFlight] = {}
    for call in sorted(own, key=lambda call: call.since):
        if not call.has_begun and call.actor_id not in busy:
            first.setdefault(call.actor_id, call)
    return {call: numbers[call.actor_id] for call in own if call.has_begun or first.get(call.actor_id) is call}


def oldest_call(calls: Mapping[CallInFlight, int], ages: Mapping[str, float]) -> OldestCall | None:
    """Return the oldest of a group's calls in flight, given their ranks and how long they have been seen, by id."""
    old = [call for call in calls if ages.get(call.task_id, 0.0) >= OLD_SECONDS]
    first = min(old, key=lambda call: (call.since, calls[call]), default=None)
    if first is None:
        return None
    return OldestCall(method=plain(first.method, MAX_TEXT), rank=calls[first], since=moment(first.since))


def is_possible(hang: Hang, group: PlannedGroup) -> bool:
    """Return whether a hang can be of this group: users can write to the GCS, also about ranks that do not exist."""
    ranks, report = hang.calls.values(), hang.report
    if hang.birth > group.last_birth or not all(0 <= rank < group.world_size for rank in ranks):
        return False
    if report is None:
        return True
    named = (report.ranks, report.suspects)
    return (report.birth or 0) == hang.birth and all(text == ranges(numbers(text, group.world_size)) for text in named)


def shown_by(ranks: Mapping[int, RankActor], nodes: Mapping[str, OnNode]) -> dict[int, Shown]:
    """Return what each rank shows, according to the nodes that have answered."""
    return {number: _shown(rank.actor_id, nodes.get(rank.node_id)) for number, rank in ranks.items()}


def _shown(actor_id: str, node: OnNode | None) -> Shown:
    if node is None:
        return Shown()
    return Shown(node.stacks.get(actor_id, NO_ANSWER), node.flights.get(actor_id), node.taken)


def returned_calls(hang: Hang, calls: Mapping[CallInFlight, int], shown: Mapping[int, Shown]) -> set[str]:
    """Return those of the calls of a hang that have returned, although Ray lists them: their caller died before that.

    A rank runs as many calls as its threads are in methods, and those are the latest that began before the stacks were
    taken. Of a rank that has not answered, or that has an event loop, that is unknown.
    """
    returned: set[str] = set()
    for rank, each in shown.items():
        if each.stack.doing in (Doing.METHOD, Doing.NOTHING):
            own = [call for call in calls if calls[call] == rank and not (call.has_begun and call.since > each.taken)]
            own.sort(key=lambda call: (call.has_begun, call.since))
            returned |= {call.task_id for call in own[: max(0, len(own) - each.stack.methods)]}
    return returned & hang.calls.keys()


def hang_report(
    hang: Hang, hang_seconds: int, shown: Mapping[int, Shown], pods: Mapping[int, str | None]
) -> HangReport:
    """Return what to report. The flight recorder knows whom a collective waits for, which stacks only suggest."""
    diagnosis = diagnose({rank: each.stack for rank, each in shown.items()})
    missing = missing_ranks({rank: each.flight for rank, each in shown.items()})
    suspects = missing.ranks if missing is not None else diagnosis.suspects
    hung = sorted(set(hang.calls.values()))
    on = f"{'rank' if len(hung) == 1 else 'ranks'} {ranges(hung)}"
    who = [str(diagnosis)] if missing is None else [diagnosis.places, str(missing)]
    return HangReport(
        method=hang.method,
        since=hang.since,
        ranks=ranges(hung),
        suspects=ranges(suspects),
        pod=pods.get(min(suspects or hung)),
        birth=hang.birth or None,
        message=plain(
            "; ".join([f"call `{hang.method}` has run for more than {hang_seconds} s on {on}", *who]), MAX_MESSAGE
        ),
    )
