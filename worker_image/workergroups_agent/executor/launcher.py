"""What runs inside the pool's pods, as Ray tasks: only there is the user's code loaded."""

import contextlib
import importlib
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ray

from workergroups.last_line import last_line
from workergroups.naming import NAMESPACE, RankName
from workergroups.single_controller.ray import ranks
from workergroups.single_controller.ray.rank_class import RayClassWithInitArgs
from workergroups_agent.executor.decide import Seat


@dataclass(frozen=True)
class Code:
    """A ConfigMap's files, and the directory where the ranks of every node look for them."""

    directory: str
    files: Mapping[str, str]


@dataclass(frozen=True)
class LaunchOrder:
    """Everything that the launcher needs to create a group's ranks."""

    name: str
    uid: str
    incarnation: int
    class_path: str
    init_args: tuple[Any, ...]
    init_kwargs: Mapping[str, Any]
    env: Mapping[str, str]
    seats: tuple[Seat, ...]
    num_gpus: float
    vendor: str


def place_code(code: Code) -> None:
    """Write the files where the ranks of this node will look for them."""
    target = Path(code.directory)
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=target.parent))
    for name, text in code.files.items():
        (draft / name).write_text(text)
    draft.chmod(0o755)
    try:
        draft.rename(target)
    except OSError:
        # Another task of the same node was faster.
        if not target.exists():
            raise


def launch(order: LaunchOrder, code: Code | None, *_placed: None) -> str | None:
    """Create all ranks, detached. Returns the last line of what went wrong, never the user's own exception.

    The code is put on this node here, not by a task before: that would be one more process to wait for.
    """
    try:
        if code is not None:
            place_code(code)
            importlib.invalidate_caches()  # the directory was not there when this process looked at its PYTHONPATH
        _create(order, load_class(order.class_path))
    except Exception as error:
        traceback.print_exc()
        return last_line("".join(traceback.format_exception_only(error)))
    return None


def end(names: Sequence[RankName]) -> None:
    """End ranks; those that are gone already do not matter."""
    for name in names:
        with contextlib.suppress(ValueError):
            ray.kill(ray.get_actor(str(name), namespace=NAMESPACE))


def load_class(path: str) -> Any:
    """The class at `package.module.Class`."""
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def _create(order: LaunchOrder, cls: Any) -> None:
    world_size = len(order.seats)
    ranks.create_ranks(
        RayClassWithInitArgs(cls, *order.init_args, **order.init_kwargs),
        [_seat(seat) for seat in order.seats],
        names=[str(RankName(order.name, order.uid, order.incarnation, rank, world_size)) for rank in range(world_size)],
        namespace=NAMESPACE,
        detached=True,
        worker_env=dict(order.env),
        num_gpus=order.num_gpus,
        device_name="amd" if order.vendor == "amd" else "cuda",
        wg_prefix=order.name,
    )


def _seat(seat: Seat) -> ranks.Seat:
    group = ray.util.get_placement_group(str(seat.placement))
    return ranks.Seat(group, seat.bundle, seat.local_rank, seat.local_world_size)
