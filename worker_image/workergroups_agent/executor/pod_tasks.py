"""The tasks of this executor in the pools' pods: they launch groups and end ranks.

The executor never fetches their results: it would unpickle what a user's process may have made.
"""

import contextlib
import logging
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import ray

from workergroups.naming import RankName
from workergroups.node import group_env
from workergroups.node_tasks import on_node, start_on_node
from workergroups_agent.exchange import PreparedLaunch
from workergroups_agent.executor import ending, launch_record, launcher
from workergroups_agent.executor.decide import LaunchGroup, RunGroup
from workergroups_agent.executor.launch_record import LaunchStep
from workergroups_agent.executor.provisions import CodeDirectory, Environment, Provisions, provide
from workergroups_agent.launch_state import (
    GroupKey,
    Launches,
    LaunchKey,
    key_of,
    missing_ranks,
    next_birth,
)
from workergroups_agent.ray_state import RayState
from workergroups_api.conditions import Explanation
from workergroups_api.launch import MAX_ENV_BYTES, Launch, code_digest, env_bytes
from workergroups_api.plan import ClusterPlan, PlannedGroup
from workergroups_api.vocabulary import LaunchState, Variable
from workergroups_common.backoff import Backoff
from workergroups_common.container_env import linked

T = TypeVar("T")

LOGGER = logging.getLogger(__name__)
CODE_DIRECTORY = "/tmp/workergroups/code"
# If a task that ends ranks takes so much longer than they have, its node may hang, and another node does it.
END_SECONDS = 5.0
# If the process of a launch has not started after this, the launch is reported to wait for it.
SLOW_SECONDS = 8.0
# After a task that called a method on ranks ended before the method began on all of them.
RUN_AGAIN_SECONDS = 5.0
# A launch whose task did not start is retried after the first pause, which doubles up to the last, MAX_TRIES times.
FIRST_RETRY_SECONDS = 2.0
LAST_RETRY_SECONDS = 30.0
MAX_TRIES = 6


def retry_seconds(tries: int) -> float | None:
    """Return the pause before a launch whose task failed to start that often is retried, None if it is given up."""
    return None if tries >= MAX_TRIES else Backoff(FIRST_RETRY_SECONDS, LAST_RETRY_SECONDS).after(tries)


@dataclass(frozen=True)
class _Task:
    """One try to launch a group."""

    attempt: str
    key: LaunchKey
    # The handle of its process, which ends when the handle is dropped.
    launcher: Any
    ref: Any
    # When it began, by the monotonic clock.
    since: float
    # The nodes that it needs; the launching task's own comes first.
    node_ids: tuple[str, ...]
    pod: str


class LaunchTasks:
    """Launches, and how they ended; an incarnation has one at a time."""

    def __init__(self) -> None:
        self._running: dict[GroupKey, _Task] = {}
        # What those that run wait for, if they do.
        self._waits: dict[GroupKey, str] = {}
        # The launch that each group needs next: what became of another one says nothing about it.
        self._next: dict[GroupKey, LaunchKey] = {}
        self._failed: dict[LaunchKey, Explanation] = {}
        self._died: dict[LaunchKey, tuple[_Task, Explanation]] = {}
        self._delayed: dict[LaunchKey, tuple[float, Explanation]] = {}
        # How often a launch's task did not start.
        self._tries: dict[LaunchKey, int] = {}
        self._begun: set[LaunchKey] = set()
        # Launches with a record in the GCS; those of earlier executors are adopted at the first look.
        self._recorded: set[LaunchKey] | None = None

    def snapshot(self, prepared: Mapping[str, PreparedLaunch]) -> Launches:
        """Return what decisions and reports are made from."""
        return Launches(
            prepared=prepared,
            running={key: self._waits.get(key) for key in self._running},
            delayed={key: why for key, (_, why) in self._of_next(self._delayed).items()},
            failed=self._of_next(self._failed),
            died={key: why for key, (_, why) in self._of_next(self._died).items()},
            begun=frozenset(key for key, launch in self._next.items() if launch in self._begun),
        )

    def _of_next(self, known: Mapping[LaunchKey, T]) -> dict[GroupKey, T]:
        return {key: known[launch] for key, launch in self._next.items() if launch in known}

    def are_running(self) -> bool:
        """Return whether a task runs, or has ended since the last look."""
        return bool(self._running)

    def ended(self) -> dict[GroupKey, launch_record.Record | None]:
        """Return the records of tasks that have ended. Call this before reading Ray's state, which must be newer."""
        if not self._running:
            return {}
        refs = [task.ref for task in self._running.values()]
        done, _ = ray.wait(refs, num_returns=len(refs), timeout=0, fetch_local=False)
        return {key: launch_record.read(task.key) for key, task in self._running.items() if task.ref in done}

    def take_note(
        self, ended: Mapping[GroupKey, launch_record.Record | None], plan: ClusterPlan, state: RayState
    ) -> None:
        """Update what is known of launches from Ray's state and the plan."""
        for key, record in ended.items():
            self._settle(self._running.pop(key), record, state)
        for launch in [launch for launch, (task, _) in self._died.items() if _is_node_gone(task, state)]:
            del self._died[launch]  # its node failed, not the launch: the group is launched elsewhere
        now = time.monotonic()
        self._delayed = {launch: held for launch, held in self._delayed.items() if held[0] > now}
        # A group whose run has ended keeps its incarnation, and has no bundles.
        planned = {key_of(group): group for group in plan.groups if group.bundles}
        missing = {key: missing_ranks(group, state) for key, group in planned.items()}
        self._next = {key: (*key, next_birth(births)) for key, births in missing.items() if births}
        unfinished = {(*key, birth) for key, births in missing.items() for birth in births}
        self._adopt(unfinished)
        self._waits = {key: why for key in self._running if (why := self._waits_for(key, planned.get(key))) is not None}
        for key in self._running.keys() - planned.keys():
            with contextlib.suppress(ray.exceptions.RayError, ValueError):
                ray.kill(self._running.pop(key).launcher)
        # Launches whose ranks are all there, or no longer planned, can be forgotten.
        self._forget_all_but(unfinished | {task.key for task in self._running.values()})

    def _waits_for(self, key: GroupKey, group: PlannedGroup | None) -> str | None:
        """Return what a running launch waits for; only for its process or the environment it waits long."""
        task = self._running[key]
        is_slow = time.monotonic() - task.since > SLOW_SECONDS
        if not is_slow and (group is None or group.environment is None):
            return None
        record = launch_record.read(task.key)
        if record is not None and record.attempt == task.attempt:
            return record.message if record.state is LaunchStep.WAITING else None
        where = "see raylet.err in /tmp/ray/session_latest/logs there"
        return f"its process in pod {task.pod} has not begun after {SLOW_SECONDS:g} s: {where}" if is_slow else None

    def start(self, action: LaunchGroup, prepared: PreparedLaunch, state: RayState) -> None:
        """Begin to launch a group; record it as failed if Ray refuses."""
        key = key_of(action.group)
        node_ids = tuple(dict.fromkeys(placement.placement.node_id for placement in action.used))
        attempt = uuid.uuid4().hex
        try:
            process, ref = _submit(action, prepared, attempt, node_ids)
        except Exception as error:
            # Ray's message may hold the user's values, so it is not logged.
            LOGGER.warning("launch of %s/%s cannot be submitted: %s", action.group.name, key[1], type(error).__name__)
            self._failed[action.key] = Explanation(LaunchState.LAUNCH_FAILED, f"Ray refuses the launch: {error}")
            return
        self._recorded = (self._recorded or set()) | {action.key}
        self._running[key] = _Task(
            attempt, action.key, process, ref, time.monotonic(), node_ids, state.nodes[node_ids[0]].pod
        )

    def _settle(self, task: _Task, record: launch_record.Record | None, state: RayState) -> None:
        own = record if record is not None and record.attempt == task.attempt else None
        claim = launch_record.claimed_by(task.key)
        LOGGER.info("launch of %s/%s ended: %s", *task.key[:2], own.state if own else "never began")
        # With a node, the bundles of ranks are gone, for want of which a launch fails.
        is_lost = (own is None or own.state is LaunchStep.FAILED) and _is_node_gone(task, state)
        if own is not None and own.state is LaunchStep.FAILED and not is_lost:
            self._failed[task.key] = Explanation(LaunchState.LAUNCH_FAILED, own.message)
        elif claim is not None and (is_lost or claim != task.attempt):
            self._begun.add(task.key)
        elif is_lost:
            pass  # the group waits for its pool
        elif own is None or own.state is LaunchStep.LATE:
            self._retry(task.key, own.message if own else f"the launching task did not start in pod {task.pod}")
        elif own.state is LaunchStep.CREATED:
            message = (
                f"the launching task in pod {task.pod} reported that it created all ranks, but Ray has no record of "
                "them: see gcs_server.out in /tmp/ray/session_latest/logs of the head's pod, and restart the group"
            )
            self._died[task.key] = task, Explanation(LaunchState.LAUNCH_FAILED, message)
        else:
            message = (
                f"the launching task's process died in pod {task.pod} before it reported a result: see its log in "
                "/tmp/ray/session_latest/logs there"
            )
            self._died[task.key] = task, Explanation(LaunchState.LAUNCH_FAILED, message)

    def _retry(self, launch: LaunchKey, why: str) -> None:
        tries = self._tries[launch] = self._tries.get(launch, 0) + 1
        what = f"{why} ({tries} of {MAX_TRIES} tries)"
        seconds = retry_seconds(tries)
        if seconds is None:
            where = "see Ray's reason in /tmp/ray/session_latest/logs/raylet.out there"
            self._failed[launch] = Explanation(LaunchState.LAUNCH_FAILED, f"{what}: {where}")
        else:
            self._delayed[launch] = (
                time.monotonic() + seconds,
                Explanation(LaunchState.LAUNCHING, f"{what}; retrying soon"),
            )

    def _adopt(self, unfinished: set[LaunchKey]) -> None:
        """Read once from the GCS how the launches of earlier executors went."""
        if self._recorded is not None:
            return
        self._recorded = launch_record.known()
        for launch in unfinished & self._recorded:
            record = launch_record.read(launch)
            if record is not None and record.state is LaunchStep.FAILED:
                self._failed[launch] = Explanation(LaunchState.LAUNCH_FAILED, record.message)
            elif launch_record.claimed_by(launch) is not None:
                self._begun.add(launch)

    def _forget_all_but(self, kept: set[LaunchKey]) -> None:
        recorded = self._recorded or set()
        self._recorded = recorded & kept
        for launch in recorded - kept:
            launch_record.forget(launch)
        self._begun &= kept
        self._failed = _only(self._failed, kept)
        self._died = _only(self._died, kept)
        self._delayed = _only(self._delayed, kept)
        self._tries = _only(self._tries, kept)


@dataclass(frozen=True)
class _Ending:
    """A task that ends ranks; it hangs after `until`, by the monotonic clock."""

    names: frozenset[RankName]
    node_id: str
    ref: Any
    until: float


class EndingTasks:
    """Tasks that end ranks. What a task that hangs has left is ended on another node."""

    def __init__(self) -> None:
        self._running: list[_Ending] = []

    def end(self, names: Sequence[RankName], node_ids: Sequence[str], seconds: int) -> int:
        """End ranks, after they were told and have answered or had that many seconds.

        Return for how many of them a task was started: no other task is at them.
        """
        done, now = set(_done([task.ref for task in self._running])), time.monotonic()
        self._running = [task for task in self._running if task.ref not in done]
        at_work = frozenset().union(*(task.names for task in self._running if task.until > now))
        hanging = {task.node_id for task in self._running if task.until <= now}
        fresh = [name for name in names if name not in at_work]
        node_id = next((node_id for node_id in node_ids if node_id not in hanging), None)
        if not fresh or node_id is None:
            return 0
        ref = start_on_node(ending.end, node_id, fresh, seconds)
        self._running.append(_Ending(frozenset(fresh), node_id, ref, now + seconds + END_SECONDS))
        return len(fresh)


class RunTasks:
    """Tasks that call the methods that groups run, one for each incarnation.

    Such a task stays until the method has ended on all ranks: as long as the caller lives, Ray knows which calls have
    returned. What became of them the executor reads from the ranks' own records. If the task ends, the calls continue.
    """

    def __init__(self) -> None:
        # The latest task of each incarnation, and when it was started.
        self._started: dict[GroupKey, tuple[Any, float]] = {}

    def start(self, action: RunGroup, prepared: PreparedLaunch) -> None:
        """Call the method, unless a task does so, or ended a moment ago."""
        now, key = time.monotonic(), key_of(action.group)
        done = set(_done([ref for ref, _ in self._started.values()]))
        self._started = {
            each: (ref, at)
            for each, (ref, at) in self._started.items()
            if ref not in done or now - at < RUN_AGAIN_SECONDS
        }
        run = prepared.launch.run if prepared.launch else None
        if run is None or key in self._started:
            return
        LOGGER.info("calling %s on all ranks of %s/%d", run.method, action.group.name, key[1])
        ref = start_on_node(launcher.run, action.node_id, action.ranks, run.method, run.keywords)
        self._started[key] = ref, now


def _submit(action: LaunchGroup, prepared: PreparedLaunch, attempt: str, node_ids: tuple[str, ...]) -> tuple[Any, Any]:
    """Provide all nodes but the first with what ranks need; a process on the first does so there and creates the ranks.

    That process is an actor's. For a task, Ray would start a second process in advance; and another task might reuse a
    process that the user's module has modified.
    """
    launch = prepared.launch
    assert launch is not None  # or else there would be no such action
    _check_env(launch)
    env = {Variable.WARM.value: action.group.uid} | linked(launch.env)
    files: Any = None
    directory = launch.code_path
    if prepared.files is not None:
        directory = f"{CODE_DIRECTORY}/{code_digest(prepared.files)}"
        files = ray.put(CodeDirectory(directory, prepared.files))  # one copy, however many nodes
    if paths := [path for path in (directory, env.get("PYTHONPATH")) if path]:
        env["PYTHONPATH"] = ":".join([*paths, "${PYTHONPATH}"])  # where the library is
    pools = {placement.placement.node_id: placement.placement.pool for placement in action.used}
    environment = _environment(action, attempt)
    if environment is not None:
        env |= group_env.reference(environment.group, environment.digest)
    first, *others = (Provisions(pools[node_id], launch.code_path, environment) for node_id in node_ids)
    problems = [
        start_on_node(provide, node_id, files, needed)
        for node_id, needed in zip(node_ids[1:], others, strict=True)
        if files is not None or needed.is_any
    ]
    order = launcher.LaunchOrder(
        attempt=attempt,
        name=action.group.name,
        uid=action.group.uid,
        incarnation=action.group.incarnation,
        constructors=_constructors(launch),
        env=env,
        placements=action.placements,
        vendor=action.vendor,
        post_mortem=launch.post_mortem is True,
        rebirth=action.rebirth,
    )
    options = {"runtime_env": {"env_vars": env}}
    process = on_node(node_ids[0], **options)(launcher.Launcher).remote()
    return process, process.launch.remote(order, files, first, *problems)


def _environment(action: LaunchGroup, attempt: str) -> Environment | None:
    group = action.group
    return None if group.environment is None else Environment(group.name, group.environment, action.key, attempt)


def _constructors(launch: Launch) -> tuple[launcher.Constructor, ...]:
    if launch.class_path is not None:
        return (launcher.Constructor("", launch.class_path, launch.init_args, launch.init_kwargs),)
    return tuple(
        launcher.Constructor(role.name, role.class_path, role.init_args, role.init_kwargs)
        for role in launch.roles or ()
    )


def _check_env(launch: Launch) -> None:
    """Refuse an environment that no process can have.

    Raises:
        ValueError: It is too large, or a value is invalid; the message quotes no value.
    """
    if (size := env_bytes(launch.env)) > MAX_ENV_BYTES:
        raise ValueError(f"spec.env has {size} bytes as Ray passes it on, and may have {MAX_ENV_BYTES}: shorten it")
    for name, value in launch.env.items():
        if "\0" in value or any(0xD800 <= ord(character) <= 0xDFFF for character in value):
            raise ValueError(f"spec.env: the value of {name} has a character that no variable can hold: remove it")


def _done(refs: list[Any]) -> list[Any]:
    if not refs:
        return []
    done: list[Any] = ray.wait(refs, num_returns=len(refs), timeout=0, fetch_local=False)[0]
    return done


def _is_node_gone(task: _Task, state: RayState) -> bool:
    return not set(task.node_ids) <= state.nodes.keys()


def _only(held: dict[LaunchKey, Any], keys: set[LaunchKey]) -> dict[LaunchKey, Any]:
    return {key: value for key, value in held.items() if key in keys}
