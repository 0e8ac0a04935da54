"""Every process of a Ray cluster: what it does, for whom it works, and for whom it waits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from workergroups.processes import listing
from workergroups.processes.listing import ALL, DRIVER, JOB, NODE, Process, ProcessCall, chosen
from workergroups.processes.tables import ActorRow, DeadActorRow, GcsTables, NodeProcess
from workergroups.stacks.orphaned_calls import RunningCall, is_orphaned, returned
from workergroups.stacks.rank_stack import parse

from ..api_server.cluster import Cluster
from ..errors import ClientError, NotFoundError
from ..objects import names
from ..objects.names import Target
from .pod_programs import ask_for_processes, understood
from .pods import ray_pods

_AT_ONCE = 64
MOST_DEAD = 32
"""Dead actors whose last lines are read, the latest."""

Ask = Callable[..., Any]
"""Runs a module of the library in a pod, with words as its arguments, and returns its answer."""


@dataclass(frozen=True)
class ProcessActivity:
    """The processes that were asked for, and what they do."""

    processes: Sequence[Process]
    others: Sequence[Process]
    """Those that call them, or that they call."""
    calls: Sequence[ProcessCall]
    """The calls from and to these processes that have not returned, the longest first."""
    stacks: Mapping[str, str]
    """The Python stacks of each process by its id, or why there are none."""
    troubles: Sequence[str]
    """Which pods could not be asked, and why: their processes are missing."""

    @cached_property
    def ends(self) -> set[str]:
        """The ids of the processes that others seem to wait for: they run a call, and wait for none themselves."""
        callers = {call.caller for call in self.calls}
        return {call.callee for call in self.calls if call.state.startswith("running") and call.caller} - callers - {""}


class Processes:
    """The processes of one Ray cluster.

    Args:
        head: The pod of Ray's head.
        pods: All pods of the Ray cluster that run.
        ask: Runs a module in one of them.
    """

    def __init__(self, head: str, pods: Sequence[str], ask: Ask) -> None:
        self._head, self._pods, self._ask = head, pods, ask

    @classmethod
    def of(cls, cluster: Cluster, target: Target) -> Processes:
        """Return those of the Ray cluster that a pool or group is on.

        Raises:
            NotRunningError: Its head is not running.
        """
        containers = {each.pod: each for each in ray_pods(cluster, target)}

        def ask_pod(pod: str, module: str, *words: str) -> Any:
            return ask_for_processes(cluster, containers[pod], module, *words)

        first, *_ = containers
        return cls(first, list(containers), ask_pod)

    def pods(self, target: str) -> list[str]:
        """Return the pods in which the processes of a target run; see `find`. A node needs no process."""
        kind, _, name = target.partition("/")
        if target == ALL or (kind == NODE and name in self._pods):
            return [pod for pod in self._pods if target == ALL or pod == name]
        return sorted({process.pod for process in self.find(target)})

    def find(self, target: str) -> list[Process]:
        """Return the processes of a target: ``job/ID``, ``actor/NAME``, ``actor/CLASS``, ``node/POD`` or ``all``.

        Raises:
            NotFoundError: There is none; the message names those that there are.
        """
        known, _, troubles = self._look()
        return _chosen(target, known, troubles)

    def activity(self, target: str) -> ProcessActivity:
        """Return what the processes of a target do; see `find`."""
        known, tables, troubles = self._look()
        asked = _chosen(target, known, troubles)
        ids = {process.id for process in asked}
        all_calls = listing.calls(tables, known)
        calls = [call for call in all_calls if ids.intersection((call.caller, call.callee))]
        near = {id_ for call in calls for id_ in (call.caller, call.callee)} - ids
        others = [process for process in known if process.id in near]
        stacks = self._stacks(asked)
        return ProcessActivity(asked, others, _without_returned(calls, stacks), stacks, troubles)

    def logs(self, target: str) -> list[tuple[Process, str]]:
        """Return the last lines that the living processes of a target have printed; see `find`."""
        # What subprocesses print is among the lines of their workers.
        workers = [each for each in self.find(target) if each.kind != DRIVER and not each.subprocess]
        texts = self._of_each("logs", [(each.id, each.pod, each.id) for each in workers], "(no lines: {})\n")
        return [(process, texts[process.id]) for process in workers]

    def previous_logs(self, target: str) -> list[tuple[DeadActorRow, str]]:
        """Return the dead actors of a target, and the last lines that they printed, in the order of their deaths.

        Raises:
            NotFoundError: There is none; the message names those that there are.
        """
        rows = (DeadActorRow(ActorRow(*actor), *rest) for actor, *rest in self._ask(self._head, "dead_actors"))
        dead = {row.actor.actor_id: row for row in rows}
        processes = [listing.dead(row) for row in dead.values()]
        chosen_ids = [process.actor_id for process in _chosen(target, processes, ())]
        latest = [dead[actor_id] for actor_id in chosen_ids[:MOST_DEAD]][::-1]
        wanted = [(row.actor.actor_id, row.pod, row.actor.worker_id) for row in latest if row.pid]
        texts = self._of_each("logs", wanted, "(no lines: {})\n")
        return [(row, texts.get(row.actor.actor_id, "")) for row in latest]

    def _look(self) -> tuple[list[Process], GcsTables, list[str]]:
        """Return all processes, what Ray's control service knows, and which pods could not be asked."""
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            from_gcs = threads.submit(_answer_or_why_not, self._ask, self._head, "in_gcs")
            on_nodes = dict(zip(self._pods, threads.map(self._on_node, self._pods), strict=True))
        said, trouble = from_gcs.result()
        troubles = [each for each in (trouble, *(why for _, why in on_nodes.values())) if each is not None]
        tables = understood(GcsTables.from_json, said) if trouble is None else GcsTables((), (), (), ())
        workers = {pod: [NodeProcess(*each) for each in found or ()] for pod, (found, _) in on_nodes.items()}
        return listing.processes(tables, workers), tables, troubles

    def _stacks(self, processes: Iterable[Process]) -> dict[str, str]:
        return self._of_each("stacks", [(each.id, each.pod, str(each.pid)) for each in processes], "no stacks: {}")

    def _of_each(self, question: str, wanted: Iterable[tuple[str, str, str]], otherwise: str) -> dict[str, str]:
        """Ask the pods about their processes, all at once.

        Args:
            question: ``stacks`` or ``logs``.
            wanted: Of each process its key in what is returned, its pod, and its id there.
            otherwise: What to return for a process whose pod does not answer, with room for the reason.
        """
        in_pod: dict[str, dict[str, str]] = defaultdict(dict)
        for key, pod, id_ in wanted:
            in_pod[pod][key] = id_
        words = [(question, *ids.values()) for ids in in_pod.values()]
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            answers = list(threads.map(self._on_node, in_pod, words))
        return {
            key: (found or {}).get(id_, otherwise.format(why or "its pod knows nothing of it"))
            for ids, (found, why) in zip(in_pod.values(), answers, strict=True)
            for key, id_ in ids.items()
        }

    def _on_node(self, pod: str, words: Sequence[str] = ("list",)) -> tuple[Any, str | None]:
        if pod not in self._pods:
            return None, f"pod {pod} is not running" if pod else "its node is gone"
        return _answer_or_why_not(self._ask, pod, "on_node", *words)


def _without_returned(calls: Sequence[ProcessCall], stacks: Mapping[str, str]) -> list[ProcessCall]:
    """Return the calls without those that have returned unnoticed, since their callers had ended."""
    running = [
        RunningCall(str(index), call.callee, call.seconds, call.state)
        for index, call in enumerate(calls)
        if call.state.startswith("running")
    ]
    unsure = {call.process for call in running if is_orphaned(call.state)} & stacks.keys()
    gone = returned(running, {id_: parse(stacks[id_]) for id_ in unsure})
    return [call for index, call in enumerate(calls) if str(index) not in gone]


def _answer_or_why_not(ask: Ask, pod: str, module: str, *words: str) -> tuple[Any, str | None]:
    try:
        return ask(pod, module, *words), None
    except ClientError as error:
        return None, str(error)


def _chosen(target: str, known: Sequence[Process], troubles: Sequence[str]) -> list[Process]:
    try:
        return chosen(target, known)
    except ValueError as error:
        raise NotFoundError("; ".join([str(error), *troubles])) from None


def pool_of(cluster: Cluster, target: str, pool: str | None) -> Target:
    """Return a pool on the Ray cluster of the processes that a target names.

    Args:
        cluster: Where to look.
        target: See `Processes.find`.
        pool: The name of a pool or group on that Ray cluster. It is not needed if the namespace has only one Ray
            cluster, nor for a job whose id begins with its pool's name, as they do unless a user has chosen the id.

    Raises:
        NotFoundError: There is no such pool, or there are several; the message names them.
    """
    if pool is not None:
        found = names.find(cluster, pool)
        return names.first_pool(cluster, found) if found.what == names.GROUP else found
    pools = names.list_all(cluster, names.POOL)
    kind, _, name = target.partition("/")
    if kind == JOB and (own := [each for each in pools if name.startswith(f"{each.name}-")]):
        return max(own, key=lambda each: len(each.name))
    of_each = {names.ray_cluster(cluster, each): each for each in pools}
    if len(of_each) == 1:
        return next(iter(of_each.values()))
    if not pools:
        raise NotFoundError(names.none_here(cluster))
    raise NotFoundError(
        f"namespace {cluster.namespace} has several Ray clusters, so {target} needs --pool: choose from "
        f"{', '.join(sorted(each.name for each in pools))}"
    )
