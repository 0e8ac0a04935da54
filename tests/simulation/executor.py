"""The agent's observer and executor on the simulated Ray: their own pure functions decide and report.

What they do in Ray is simulated, and one process simulates both.
"""

import asyncio
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar, assert_never

from tests.simulation import ray
from workergroups.announcements.runs import RunRecord, RunStep
from workergroups.naming import RankName
from workergroups.ray_private.death import Death
from workergroups_agent.exchange import Exchange, PreparedLaunch, Reports
from workergroups_agent.executor.decide import (
    Action,
    Announce,
    AnnouncePool,
    CreatePlacement,
    EndRanks,
    LaunchGroup,
    RemovePlacement,
    RunGroup,
    decide,
)
from workergroups_agent.files import Stamp
from workergroups_agent.launch_state import Heard, Launches, launches_to_tell
from workergroups_agent.observer.report import report
from workergroups_agent.preflight_records import PreflightRecord
from workergroups_agent.preflight_state import held_nodes, nodes_to_ask
from workergroups_agent.ray_state import JoinedNode, PlacementState, RankActor, RayState
from workergroups_api.conditions import Explanation
from workergroups_api.plan import ClusterPlan
from workergroups_api.vocabulary import PreflightState, RankEnd

T = TypeVar("T")
LOOK_SECONDS = 0.1
START_SECONDS = 0.05
# Seconds from a rank's creation to the end of its constructor.
CONSTRUCTOR_SECONDS = 0.05
# Ranks that are told before they end take as long at most to answer.
MOST_ANSWER_SECONDS = 1.0
DEATHS = {
    "NodeLost": Death(RankEnd.NODE_LOST, "the node died", "the node died"),
    "Removed": Death(RankEnd.REMOVED, "it was removed", "it was removed"),
    "ProcessDied": Death(RankEnd.PROCESS_DIED, "it was killed", "it was killed"),
}


@dataclass(frozen=True)
class Surroundings:
    """The environment of an executor."""

    gcs: Callable[[], ray.Gcs | None]
    is_frozen: Callable[[], bool]
    is_lying: Callable[[], bool]
    # Class path -> what its constructor raises.
    failing: Mapping[str, str]


class _Latest(Generic[T]):
    """The content of a file, which is read again when its stamp has changed."""

    def __init__(self) -> None:
        self._stamp: Stamp | None = None
        self._value: T | None = None

    def of(self, stamp: Stamp | None, read: Callable[[], T | None]) -> T | None:
        """Return the value; a file that is written after the stamp was taken is read again at the next look."""
        if stamp != self._stamp:
            self._stamp, self._value = stamp, read()
        return self._value


class Executor:
    """One life of the executor's container."""

    def __init__(self, directory: Path, token: str | None, around: Surroundings) -> None:
        self._exchange = Exchange(directory)
        self._token = token
        self._around = around
        self._gcs: ray.Gcs | None = None
        self._reported: Reports | None = None
        self._plan: _Latest[ClusterPlan] = _Latest()
        self._prepared: dict[str, _Latest[PreparedLaunch]] = {}

    @property
    def session(self) -> str | None:
        """Which Ray it is connected to."""
        return self._gcs.session if self._gcs else None

    async def run(self) -> None:
        """Observe, act and report. Never returns."""
        self._exchange.withdraw()
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            if self._around.is_frozen():
                continue
            gcs = self._around.gcs()
            if gcs is not self._gcs:
                self._leave()
                if gcs is not None and gcs.token == self._token:
                    await asyncio.sleep(START_SECONDS)
                    self._gcs = gcs
            elif gcs is not None:
                self._step(gcs)

    def _leave(self) -> None:
        """Ray is gone: the process ends, and kubelet restarts it."""
        self._exchange.withdraw()
        self._gcs, self._reported = None, None

    def _step(self, gcs: ray.Gcs) -> None:
        self._run_constructors(gcs)
        gcs.end_the_told()
        plan = self._plan.of(self._exchange.plan_stamp(), self._exchange.read_plan)
        if plan is None:
            self._say(Reports(session=gcs.session), gcs)
            return
        launches = self._launches(plan, gcs)
        for action in decide(plan, _state(gcs), launches):
            self._act(action, gcs, launches)
        _check_nodes(plan, gcs)
        launches, state = self._launches(plan, gcs), _state(gcs)
        heard = Heard(launches_to_tell(plan, state, launches))
        self._say(report(plan, state, launches.prepared, heard, last_words={}, hangs=dict(gcs.hangs), oldest={}), gcs)

    def _launches(self, plan: ClusterPlan, gcs: ray.Gcs) -> Launches:
        prepared = {group.uid: self._prepared_launch(group.uid) for group in plan.groups}
        return Launches(prepared={uid: found for uid, found in prepared.items() if found}, failed=dict(gcs.failed))

    def _prepared_launch(self, uid: str) -> PreparedLaunch | None:
        latest = self._prepared.setdefault(uid, _Latest())
        return latest.of(self._exchange.launch_stamp(uid), lambda: self._exchange.read_launch(uid))

    def _say(self, reports: Reports, gcs: ray.Gcs) -> None:
        if reports != self._reported:
            self._exchange.write_reports(reports)
            self._reported = reports
        if self._around.is_lying():
            self._reported = None
            self._exchange.write_reports(_lies(reports))
        self._exchange.beat(gcs.session)

    def _act(self, action: Action, gcs: ray.Gcs, launches: Launches) -> None:
        match action:
            case RemovePlacement():
                gcs.remove_placement(str(action.name))
            case CreatePlacement():
                gcs.placements[str(action.name)] = ray.Placement(action.name, action.name.node_id)
            case Announce():
                gcs.announced[action.group] = (action.uid, action.incarnation, action.is_final)
            case EndRanks():
                for name in map(str, action.names):
                    answers = random.Random(name).uniform(0, MOST_ANSWER_SECONDS)
                    gcs.end(gcs.ranks[name], answers if action.seconds else None)
            case LaunchGroup():
                self._launch(action, gcs, launches.prepared[action.group.uid])
            case RunGroup():
                gcs.runs |= {str(name): RunRecord(RunStep.BEGUN) for name in action.ranks if str(name) not in gcs.runs}
            case AnnouncePool():
                pass  # Only drivers read the announcements about pools, and histories have no drivers.
            case _:
                assert_never(action)

    def _launch(self, action: LaunchGroup, gcs: ray.Gcs, prepared: PreparedLaunch) -> None:
        group = action.group
        assert prepared.launch is not None
        missing = [path for path in ray.class_paths(prepared.launch) if path.endswith(".Missing")]
        if missing:
            why = Explanation("LaunchFailed", f"AttributeError: no {missing[0]}")
            gcs.failed[group.uid, group.incarnation] = why
            return
        if group.name in {rank.name.group for rank in gcs.ranks.values() if rank.name.incarnation_key in gcs.noticed}:
            gcs.rude.append(f"{group.name}/{group.incarnation} was launched beside earlier ranks that have notice")
        numbers = action.rebirth.ranks if action.rebirth else range(group.world_size)
        birth = action.key[-1]
        for number, place in zip(numbers, action.used, strict=True):
            name = RankName(group.name, group.uid, group.incarnation, number, group.world_size, birth)
            node_id = place.placement.node_id
            gcs.ranks[str(name)] = ray.Rank(
                name, node_id, gcs.pods[node_id], prepared.revision, made_at=time.monotonic(), launch=prepared.launch
            )

    def _run_constructors(self, gcs: ray.Gcs) -> None:
        for rank in gcs.ranks.values():
            if rank.state == "PENDING_CREATION" and time.monotonic() - rank.made_at > CONSTRUCTOR_SECONDS:
                errors = map(self._around.failing.get, ray.class_paths(rank.launch))
                error = next(filter(None, errors), None)
                if error is None:
                    rank.state = "ALIVE"
                else:
                    rank.state, rank.cause = "DEAD", error


def _state(gcs: ray.Gcs) -> RayState:
    return RayState(
        session=gcs.session,
        nodes={node.id: JoinedNode(node.id, node.pod, node.node_group) for node in gcs.nodes.values()},
        placements=tuple(PlacementState(each.name, "CREATED", "FINISHED") for each in gcs.placements.values()),
        ranks=tuple(
            RankActor(rank.name, str(rank.name), rank.state, rank.node_id, int(rank.made_at * 1000), _death(rank))
            for rank in gcs.ranks.values()
        ),
        pods=dict(gcs.pods),
        pauses=dict(gcs.pauses),
        head=gcs.head,
        drivers=tuple(sorted(gcs.drivers)),
        last_driver_end=gcs.last_driver_end,
        preflights=dict(gcs.preflights),
        runs=dict(gcs.runs),
        noticed=gcs.noticed,
    )


def _check_nodes(plan: ClusterPlan, gcs: ray.Gcs) -> None:
    """Check the nodes that have not passed; what is wrong with one is known at once, and repeated until it is not."""
    checked = {pool.uid: pool for pool in plan.pools if pool.preflight is not None}
    gcs.preflights = {uid: record for uid, record in gcs.preflights.items() if uid in checked}
    state = _state(gcs)
    for uid, pool in checked.items():
        asked = nodes_to_ask(pool, held_nodes(pool, plan, state), state)
        if not asked or pool.preflight is None:
            continue
        before = gcs.preflights.get(uid)
        passed = before.passed_at(pool.preflight.level) if before else frozenset()
        wrong = [f"{node.pod}: {gcs.unfit[node.pod]}" for node in asked if node.pod in gcs.unfit]
        gcs.preflights[uid] = PreflightRecord(
            attempt="simulated",
            level=pool.preflight.level,
            generation=pool.generation,
            state=PreflightState.FAILED if wrong else PreflightState.PASSED,
            message="; ".join(wrong),
            asked=tuple(node.id for node in asked),
            passed=tuple(passed) if wrong else (*passed, *(node.id for node in asked)),
        )


def _lies(reports: Reports) -> Reports:
    """Return reports on objects that are not planned, instead of the true ones."""
    pools = {f"../../{name}": entry for name, entry in reports.pools.items()}
    groups = {f"{name}\n?force=true": entry for name, entry in reports.groups.items()}
    # Also on pools and groups of other clusters, under the names that histories use.
    pools |= {f"p{number}": entry for number in range(4) for entry in reports.pools.values()}
    groups |= {f"g{number}": entry for number in range(4) for entry in reports.groups.values()}
    return Reports(session="x" * 10_000, pools=pools, groups=groups)


def _death(rank: ray.Rank) -> Death | None:
    if rank.is_alive:
        return None
    cause = rank.cause or "ProcessDied"
    return DEATHS.get(cause) or Death(RankEnd.CONSTRUCTOR_FAILED, cause, cause)
