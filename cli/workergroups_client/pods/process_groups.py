"""Processes that do the same, and for whom they wait: what `stacks` and `calls` show of a `ProcessActivity`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from workergroups.processes.listing import Process, ProcessCall
from workergroups.stacks.rank_stack import RankStack, parse
from workergroups.stacks.stack_groups import diagnose

from .processes import ProcessActivity

_SHOWN = 4


@dataclass(frozen=True)
class ProcessGroup:
    """Processes of one class or function whose stacks are alike."""

    who: str
    """For people, such as ``actor TaskRunner (pid 71 in ppo-head)``, or ``8 actors Rollout``."""
    processes: tuple[str, ...]
    """Their ids."""
    suspect: bool
    """Whether others seem to wait for them: they run a call, and wait for none."""
    where: str
    waits: tuple[str, ...]
    """What they have called that has not returned, and who waits for them, for people."""

    @property
    def first(self) -> str:
        """The id of the first of them, whose stack stands for all."""
        return self.processes[0]


def process_groups(activity: ProcessActivity) -> list[ProcessGroup]:
    """Return the processes by what they do, those first for whom others seem to wait."""
    by_label: dict[tuple[str, str, str], list[Process]] = defaultdict(list)
    for process in activity.processes:
        by_label[process.kind, process.label, process.subprocess].append(process)
    found = [group for alike in by_label.values() for group in _alike(alike, activity)]
    return sorted(found, key=lambda group: not group.suspect)


def _alike(processes: Sequence[Process], activity: ProcessActivity) -> list[ProcessGroup]:
    stacks = {number: parse(activity.stacks[process.id]) for number, process in enumerate(processes)}
    groups = []
    for block in diagnose(stacks).blocks:
        members = [processes[number] for number in block.ranks]
        ids = {process.id for process in members}
        groups.append(
            ProcessGroup(
                who=who(members),
                processes=tuple(process.id for process in members),
                suspect=not ids.isdisjoint(activity.ends),
                where=block.where,
                waits=tuple(_waits(ids, block.stack, activity)),
            )
        )
    return groups


def _waits(ids: set[str], stack: RankStack, activity: ProcessActivity) -> list[str]:
    """Return a line for each call from or to these processes; calls of one name and state share a line."""
    near = {process.id: process for process in (*activity.processes, *activity.others)}
    called, calling = defaultdict(list), defaultdict(list)
    for call in activity.calls:
        if call.caller in ids:
            called[call.name, call.state].append(call)
        if call.callee in ids:
            calling[call.name, call.state].append(call)
    verb = "waits for" if stack.waits_for_ray else "has called"
    return [
        *_lines(verb, "on", called, {call: call.callee for call in activity.calls}, near),
        *_lines("runs", "for", calling, {call: call.caller for call in activity.calls}, near),
    ]


def _lines(
    verb: str,
    link: str,
    calls: Mapping[tuple[str, str], list[ProcessCall]],
    other_ends: Mapping[ProcessCall, str],
    near: Mapping[str, Process],
) -> Iterable[str]:
    for (name, state), alike in list(calls.items())[:_SHOWN]:
        others = [near[other_ends[call]] for call in alike if other_ends[call] in near]
        whom = f", {link} {who(list(dict.fromkeys(others)))}" if others else ""
        said = "has" if verb == "runs" and not state.startswith("running") else verb
        yield f"{said} {name}, {state} for {max(call.seconds for call in alike):.0f} s{whom}"
    if (more := len(calls) - _SHOWN) > 0:
        yield f"and {more} more"


def who(processes: Sequence[Process]) -> str:
    """Return processes for people."""
    if len(processes) == 1:
        return f"{processes[0]} (pid {processes[0].pid} in {processes[0].pod})"
    kinds = Counter((process.subprocess, process.kind, process.label) for process in processes)
    return ", ".join(_count(count, *what) for what, count in kinds.items())


def _count(count: int, subprocess: str, kind: str, label: str) -> str:
    if subprocess:
        return f"{count} process{'es' if count > 1 else ''} {subprocess} of {kind} {label}"
    return f"{count} {kind}{'s' if count > 1 else ''} {label}"
