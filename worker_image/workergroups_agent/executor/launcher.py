"""The Ray tasks that run in the pools' pods: user code is loaded only there.

The executor reads no result of these tasks. They record in the GCS how a launch ended: see `launch_record`.
"""

import difflib
import importlib
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ray

from workergroups.naming import NAMESPACE, RankName
from workergroups.node import group_env
from workergroups.ray_private import failed_start
from workergroups.ray_private.actors import actor_id
from workergroups.ray_private.cluster_state import actor_state
from workergroups.ray_private.process import own_pod
from workergroups.single_controller.ray import ranks
from workergroups.single_controller.ray.colocation import create_colocated_worker_cls
from workergroups.single_controller.ray.rank_class import RayClassWithInitArgs
from workergroups.single_controller.ray.run_method import start_run
from workergroups.single_controller.ray.visible_devices import own_device_name
from workergroups.stacks.exception_text import exception_and_place
from workergroups.worker_process import starting
from workergroups_agent.executor import launch_record
from workergroups_agent.executor.decide import Rebirth
from workergroups_agent.executor.launch_record import LaunchStep
from workergroups_agent.executor.provisions import CodeDirectory, Provisions, provide
from workergroups_agent.launch_state import LaunchKey
from workergroups_agent.placements import RankPlacement
from workergroups_api.vocabulary import Vendor
from workergroups_common.text import plain

REGISTRATION_SECONDS = 60.0
# Characters of a traceback in the log of the launching process.
MAX_TRACEBACK = 8192


@dataclass(frozen=True)
class Constructor:
    """A class of the ranks, and its constructor's arguments."""

    # Empty if the ranks have one class and no roles.
    role: str
    class_path: str
    init_args: tuple[Any, ...]
    init_kwargs: Mapping[str, Any]


@dataclass(frozen=True)
class LaunchOrder:
    """Everything that the launcher needs to create a group's ranks."""

    # The id of this try: of two concurrent tries, only one creates ranks.
    attempt: str
    name: str
    uid: str
    incarnation: int
    # One without a role, or one for each role.
    constructors: tuple[Constructor, ...]
    env: Mapping[str, str]
    placements: tuple[RankPlacement, ...]
    vendor: str
    # Whether the ranks pause for a debugger before an exception leaves them.
    post_mortem: bool
    # Which ranks to create; None for all.
    rebirth: Rebirth | None = None

    @property
    def key(self) -> LaunchKey:
        """What tells this launch from all others."""
        return self.uid, self.incarnation, self.birth

    @property
    def birth(self) -> int:
        """The birth of the ranks."""
        return self.rebirth.number if self.rebirth else 0


class Launcher:
    """A launch's process."""

    def launch(
        self, order: LaunchOrder, files: CodeDirectory | None, provisions: Provisions, *problems: str | None
    ) -> None:
        """Create all ranks. The process records how that ended, and raises nothing."""
        if (cause := failed_start.cause()) is None:
            launch(order, files, provisions, *problems)
        else:
            step = LaunchStep.LATE if cause.startswith(starting.LATE) else LaunchStep.FAILED
            message = f"the launching process cannot start in pod {own_pod()}: {cause}"
            launch_record.write(order.key, launch_record.Record(order.attempt, step, message))


def launch(order: LaunchOrder, files: CodeDirectory | None, provisions: Provisions, *problems: str | None) -> None:
    """Create the ranks, detached, and record how that ended.

    This node is provided for here and not by an earlier task, which would be one more process to wait for. `problems`
    are the results of the tasks that provided for the other nodes.
    """
    loading = launch_record.Record(order.attempt, LaunchStep.LOADING)
    launch_record.write(order.key, loading)
    try:
        problem = next(filter(None, problems), None) or provide(files, provisions)
        if problem is not None:
            record = launch_record.Record(order.attempt, LaunchStep.FAILED, problem)
        else:
            if provisions.environment is not None:
                group_env.require()
                launch_record.write(order.key, loading)  # it may have waited
            importlib.invalidate_caches()  # the directory was not there when this process looked at its PYTHONPATH
            loaded = _load(order.constructors)
            if not launch_record.claim(order.key, order.attempt):
                return  # another launcher of this very incarnation creates its ranks
            _wait_until_ray_has(_create(order, loaded))
            record = launch_record.Record(order.attempt, LaunchStep.CREATED)
    except BaseException as error:  # the user's module may raise anything, SystemExit too
        record = launch_record.Record(order.attempt, LaunchStep.FAILED, exception_and_place(error))
        launch_record.write(order.key, record)
        for line in traceback.format_exc()[-MAX_TRACEBACK:].splitlines():
            print(plain(line, MAX_TRACEBACK), file=sys.stderr)
    else:
        launch_record.write(order.key, record)


def run(names: Sequence[RankName], method: str, kwargs: Mapping[str, Any]) -> None:
    """Call a method on all of these ranks at once, and wait until it has ended on all of them."""
    handles = [ray.get_actor(str(name), namespace=NAMESPACE) for name in names]
    refs = [start_run(handle, method, kwargs) for handle in handles]
    ray.wait(refs, num_returns=len(refs), fetch_local=False)


def load_class(path: str) -> Any:
    """Import the class at `package.module.Class`."""
    module, _, name = path.rpartition(".")
    try:
        found = importlib.import_module(module)
    except SystemExit as error:
        raise ImportError(f"module {module} ends the process when it is imported: SystemExit: {error.code}") from None
    if not hasattr(found, name):
        near = difflib.get_close_matches(name, vars(found), n=1)
        raise ImportError(f"module {module} has no class {name}{f', but {near[0]}' if near else ''} ({path})")
    return getattr(found, name)


def _load(constructors: Sequence[Constructor]) -> RayClassWithInitArgs:
    """Return the class of the ranks; it combines the roles' classes if there are roles."""
    loaded = {
        each.role: RayClassWithInitArgs(load_class(each.class_path), *each.init_args, **each.init_kwargs)
        for each in constructors
    }
    if "" in loaded:
        return loaded[""]
    for role in loaded.values():
        role.check_arguments()  # the combined class takes no arguments
    return create_colocated_worker_cls(loaded)


def _create(order: LaunchOrder, rank_class: RayClassWithInitArgs) -> list[Any]:
    world_size, rebirth = len(order.placements), order.rebirth
    names = [
        RankName(order.name, order.uid, order.incarnation, rank, world_size, order.birth) for rank in range(world_size)
    ]
    return ranks.create_ranks(
        rank_class,
        [_seat(placement) for placement in order.placements],
        names=list(map(str, names)),
        namespace=NAMESPACE,
        detached=True,
        worker_env=dict(order.env),
        device_name="amd" if order.vendor == Vendor.AMD else "cuda",
        wg_prefix=order.name,
        post_mortem=order.post_mortem,
        only=rebirth.ranks if rebirth else None,
        rank_zero=rebirth.rank_zero if rebirth else None,
    )


def _wait_until_ray_has(created: list[Any]) -> None:
    """Wait until the GCS has everything that the ranks are created from.

    Until then they end with this process, detached or not, and this process ends with its task.
    """
    deadline = time.monotonic() + REGISTRATION_SECONDS
    for rank in created:
        while (state := actor_state(actor_id(rank))) is None or state.state == "DEPENDENCIES_UNREADY":
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"Ray has not registered all ranks within {REGISTRATION_SECONDS:g} s: see gcs_server.out in "
                    "/tmp/ray/session_latest/logs of the head's pod"
                )
            time.sleep(0.02)


def _seat(placement: RankPlacement) -> ranks.Seat:
    group = ray.util.get_placement_group(str(placement.placement))
    return ranks.Seat(
        group,
        placement.bundle,
        placement.local_rank,
        placement.local_world_size,
        num_gpus=placement.num_gpus,
        devices=placement.devices,
        device_name=own_device_name(placement.device),
    )
