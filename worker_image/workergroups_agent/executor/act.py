"""Carry out actions in Ray. Launches run as tasks in the pool's pods; here is only kept which, and how they end."""

import hashlib
import json
import logging
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import ray
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from workergroups.last_line import last_line
from workergroups.naming import RankName
from workergroups_agent.executor import launcher
from workergroups_agent.executor.decide import Action, CreatePlacement, EndRanks, Launch, RemovePlacement
from workergroups_agent.executor.report import Trouble
from workergroups_api.plan import Orders

LOGGER = logging.getLogger(__name__)
CODE_DIRECTORY = "/tmp/workergroups/code"

_NODE_IS_GONE = (ray.exceptions.TaskUnschedulableError, ray.exceptions.NodeDiedError)

GroupKey = tuple[str, int]


class PodTasks:
    """The tasks of this agent's life in the pool's pods: launches, by group UID and incarnation, and ranks' endings."""

    def __init__(self) -> None:
        self._ending: Any = None
        self._running: dict[GroupKey, ray.ObjectRef[str | None]] = {}
        # With the code that it was: other code is worth another try.
        self._troubles: dict[GroupKey, tuple[Trouble, str | None]] = {}

    def end(self, names: tuple[RankName, ...], node_id: str) -> None:
        """End ranks, unless that is under way already."""
        if self._ending is None or ray.wait([self._ending], timeout=0)[0]:
            self._ending = _task(launcher.end, node_id).remote(names)

    def start(self, key: GroupKey, ref: Any) -> None:
        """A launcher is under way."""
        self._running[key] = ref
        self._troubles.pop(key, None)

    def hold(self, key: GroupKey, trouble: Trouble, code: str | None) -> None:
        """A launch failed, or cannot even begin."""
        self._troubles[key] = (trouble, code)

    def collect(self, codes: Mapping[GroupKey, str | None]) -> None:
        """Take note of launchers that ended, and forget failures whose code changed and groups that are gone."""
        if self._running:
            done, _ = ray.wait(list(self._running.values()), num_returns=len(self._running), timeout=0)
            for key in [key for key, ref in self._running.items() if ref in done]:
                trouble = _result(self._running.pop(key))
                if trouble is not None:
                    LOGGER.warning("launch of %s failed: %s", key, trouble)
                    self.hold(key, Trouble("LaunchFailed", trouble), codes.get(key))
        self._troubles = {key: held for key, held in self._troubles.items() if codes.get(key, ...) == held[1]}

    @property
    def keys(self) -> frozenset[GroupKey]:
        """Groups that are not to be launched now."""
        return frozenset(self._running) | frozenset(self._troubles)

    @property
    def troubles(self) -> dict[GroupKey, Trouble]:
        """Why groups are not launched."""
        return {key: trouble for key, (trouble, _) in self._troubles.items()}


def _result(ref: Any) -> str | None:
    try:
        result: str | None = ray.get(ref)
    except _NODE_IS_GONE:
        return None  # The seats are reserved elsewhere; the group is launched there.
    except ray.exceptions.RayError as error:
        # The launcher itself died; its own text is the message, as nothing of the user's travels with it.
        return last_line(str(error))
    return result


def act(actions: Iterable[Action], orders: Orders, tasks: PodTasks) -> None:
    """Carry out the actions in order; one that fails is tried again at the next look."""
    for action in actions:
        LOGGER.info("%s", action)
        try:
            _act(action, orders, tasks)
        except (ValueError, ray.exceptions.RayError) as error:
            LOGGER.warning("%s: %s", type(action).__name__, error)


def _act(action: Action, orders: Orders, tasks: PodTasks) -> None:
    match action:
        case RemovePlacement(name):
            remove_placement_group(ray.util.get_placement_group(str(name)))
        case CreatePlacement(name, bundles):
            placement_group(
                [dict(bundle) for bundle in bundles],
                strategy="STRICT_PACK",
                name=str(name),
                lifetime="detached",
                bundle_label_selector=[{"ray.io/node-id": name.node_id}] * len(bundles),
            )
        case EndRanks(names, node_id):
            tasks.end(names, node_id)
        case Launch():
            _launch(action, orders, tasks)


def code_digest(files: Mapping[str, str] | None) -> str | None:
    """Which code this is; None while it is not there."""
    if files is None:
        return None
    return hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()[:16]


def _launch(action: Launch, orders: Orders, tasks: PodTasks) -> None:
    """Place the code on all nodes but the first; a task on the first places it there and creates the ranks."""
    group = action.group
    first_node = action.seats[0].placement.node_id
    key = (group.uid, group.incarnation)
    env = dict(group.env)
    code: launcher.Code | None = None
    placed: list[Any] = []
    if group.config_map is not None:
        files = orders.code.get(group.config_map)
        if files is None:
            message = f"spec.code.configMap: there is no ConfigMap {group.config_map}: create it"
            tasks.hold(key, Trouble("WaitingForCode", message), None)
            return
        code = launcher.Code(f"{CODE_DIRECTORY}/{code_digest(files)}", files)
        env["PYTHONPATH"] = ":".join([code.directory, *filter(None, [env.get("PYTHONPATH"), "${PYTHONPATH}"])])
        other_nodes = {seat.placement.node_id for seat in action.seats} - {first_node}
        placed = [_task(launcher.place_code, node).remote(code) for node in sorted(other_nodes)]
    order = launcher.LaunchOrder(
        name=group.name,
        uid=group.uid,
        incarnation=group.incarnation,
        class_path=group.class_path,
        init_args=group.init_args,
        init_kwargs=group.init_kwargs,
        env=env,
        seats=action.seats,
        num_gpus=action.num_gpus,
        vendor=action.vendor,
    )
    task = partial(_task, runtime_env={"env_vars": env}) if env else _task
    tasks.start(key, task(launcher.launch, first_node).remote(order, code, *placed))


def _task(function: Any, node_id: str, **options: Any) -> Any:
    """A task that runs on that node and takes none of its resources."""
    node = NodeAffinitySchedulingStrategy(node_id, soft=False)
    return ray.remote(num_cpus=0, max_retries=0, scheduling_strategy=node, **options)(function)
