"""Create the ranks of a group: one actor per seat, all at once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import ray
from ray.actor import ActorHandle
from ray.util.placement_group import PlacementGroup
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from workergroups.ray_private.actors import actor_id
from workergroups.single_controller.base.decorator import registered_methods
from workergroups_api.vocabulary import FATAL_ENV, PROTECTED_ENV

from . import group_record
from .method_table import pickle_methods, signatures_of
from .rank_class import RayClassWithInitArgs, launch_arguments, rank_actor_class
from .rank_process import RankLaunch
from .visible_devices import ray_name
from .whole_nodes import check_whole_nodes


class Seat(NamedTuple):
    """Where one rank runs."""

    placement_group: PlacementGroup
    bundle_index: int
    local_rank: int
    """The rank's number among the group's ranks on its node."""
    local_world_size: int
    """The number of the group's ranks on its node."""
    num_gpus: float | None = None
    """The share of one accelerator that the rank takes; the default is the argument of `create_ranks`."""
    devices: int | None = None
    """How many accelerators its bundle has; the rank sees all. The default is the argument of `create_ranks`."""
    device_name: str | None = None
    """The kind of these accelerators; the default is the argument of `create_ranks`."""


def create_ranks(
    ray_cls_with_init: RayClassWithInitArgs,
    seats: Sequence[Seat],
    *,
    names: Sequence[str],
    namespace: str | None = None,
    detached: bool = False,
    worker_env: Mapping[str, str] | None = None,
    num_gpus: float = 0,
    devices_per_rank: int = 1,
    device_name: str = "cuda",
    wg_prefix: str = "",
    post_mortem: bool = False,
    master: tuple[str, str] | None = None,
    only: Collection[int] | None = None,
    rank_zero: str | None = None,
) -> list[ActorHandle]:
    """Create one actor per seat, in rank order, and return without waiting for any of them.

    The ranks' processes find each other: rank 0 chooses the port at which they meet, and the others' constructors wait
    for it. This creates nothing but the actors, so it can run in a driver, an actor or a task, and with ``detached``
    the ranks outlive it.

    Args:
        ray_cls_with_init: The ranks' class and the arguments of its constructor.
        seats: Where each rank runs.
        names: The actor names, one per seat.
        namespace: The Ray namespace of the names; the caller's by default.
        detached: Whether the ranks outlive the creator.
        worker_env: Environment variables of each rank's process, set before Python starts in it.
        num_gpus: The share of one accelerator of its bundle that each rank takes; 0 for none.
        devices_per_rank: How many accelerators each bundle has. A rank sees them all, and so does every other rank in
            its bundle. If it is more than one, all accelerators of a node must be in one placement group.
        device_name: ``"cuda"``, ``"amd"``, ``"npu"``, or ``"cpu"`` for GPUs that exist only as numbers in Ray.
        wg_prefix: The ranks' WG_PREFIX.
        post_mortem: Whether ranks pause for a debugger before an exception leaves their constructor or a method.
        master: Address and port at which the ranks meet; by default, rank 0 chooses them.
        only: The ranks to create, of a group whose other ranks exist; by default all.
        rank_zero: The hexadecimal actor id of rank 0 if it is one of those others. What it has published is corrected,
            since a rank that lost its node gets another place.

    Raises:
        ValueError: ``worker_env`` sets a protected variable, the numbers of names and seats differ, or
            ``devices_per_rank`` does not fit ``num_gpus``, or the bundles, or the nodes.
        TypeError: The constructor does not accept these arguments, or a variable's value is not a string.
    """
    if len(names) != len(seats):
        raise ValueError(f"there must be one name per seat, not {len(names)} names for {len(seats)} seats")
    seats = [
        seat._replace(
            num_gpus=num_gpus if seat.num_gpus is None else seat.num_gpus,
            devices=devices_per_rank if seat.devices is None else seat.devices,
            device_name=seat.device_name or device_name,
        )
        for seat in seats
    ]
    ray_cls_with_init.check_arguments()
    _check_devices(seats)
    actor_class = rank_actor_class(ray_cls_with_init.cls, post_mortem)
    options = _actor_options(ray_cls_with_init.options, worker_env)
    if detached:
        options["lifetime"] = "detached"
    if namespace is not None:
        options["namespace"] = namespace
    methods = pickle_methods(registered_methods(ray_cls_with_init.user_class))
    signatures = signatures_of(actor_class)
    places = tuple((seat.placement_group.id.hex(), seat.bundle_index) for seat in seats)

    if rank_zero is not None:
        group_record.correct_places(rank_zero, places)
    ranks: list[ActorHandle] = []
    try:
        for rank, (seat, name) in enumerate(zip(seats, names, strict=True)):
            if only is not None and rank not in only:
                continue
            launch = RankLaunch(
                rank=rank,
                world_size=len(seats),
                local_rank=seat.local_rank,
                local_world_size=seat.local_world_size,
                wg_prefix=wg_prefix,
                device_name=seat.device_name or device_name,
                devices_per_rank=seat.devices or 1,
                master=master,
                rank_zero=rank_zero if rank else None,
                methods={} if rank else methods,
                signatures={} if rank else signatures,
                places=() if rank else places,
            )
            placed = actor_class.options(
                **{**_share(seat.num_gpus or 0, seat.device_name or device_name), **options},
                name=name,
                scheduling_strategy=PlacementGroupSchedulingStrategy(seat.placement_group, seat.bundle_index),
            )
            ranks.append(placed.remote(*launch_arguments(launch, ray_cls_with_init)))
            if rank == 0:
                rank_zero = actor_id(ranks[0])
    except BaseException:
        for created in ranks:
            ray.kill(created)
        raise
    return ranks


def check_worker_env(worker_env: Mapping[str, str]) -> None:
    """Refuse variables that users may not set in a rank's environment.

    Raises:
        ValueError: A protected variable.
        TypeError: A value that is not a string.
    """
    if protected := sorted(worker_env.keys() & set(PROTECTED_ENV)):
        raise ValueError(
            f"worker_env must not set {', '.join(protected)}: the group sets these for each rank. Remove them."
        )
    if fatal := sorted(worker_env.keys() & set(FATAL_ENV)):
        raise ValueError(f"worker_env must not set {', '.join(fatal)}: no rank starts with them. Remove them.")
    for name, value in worker_env.items():
        if not isinstance(value, str):
            raise TypeError(f"worker_env values must be strings, but {name} is {value!r}")


def _check_devices(seats: Sequence[Seat]) -> None:
    """Refuse seats that would show a rank the wrong devices."""
    whole: dict[tuple[str, int], list[PlacementGroup]] = {}
    for seat in seats:
        share, devices = seat.num_gpus or 0, 1 if seat.devices is None else seat.devices
        if devices < 1 or (devices > 1 and share > 1):
            raise ValueError(
                f"devices_per_rank must be at least 1, and num_gpus a share of one of them, not {devices} and {share}"
            )
        if share and devices > 1:
            whole.setdefault((ray_name(seat.device_name or ""), devices), []).append(seat.placement_group)
    for (resource, devices), placement_groups in whole.items():
        check_whole_nodes(placement_groups, resource, devices)


def _share(num_gpus: float, device_name: str) -> dict[str, Any]:
    """Return Ray's options for a share of an accelerator."""
    if not num_gpus:
        return {}
    name = ray_name(device_name)
    return {"num_gpus": num_gpus} if name == "GPU" else {"resources": {name: num_gpus}}


def _actor_options(user_options: Mapping[str, Any], worker_env: Mapping[str, str] | None) -> dict[str, Any]:
    """Return Ray's options that all ranks share: the user's, and the environment."""
    options: dict[str, Any] = dict(user_options)
    if worker_env:
        check_worker_env(worker_env)
        runtime_env = dict(options.get("runtime_env") or {})
        runtime_env["env_vars"] = {**runtime_env.get("env_vars", {}), **worker_env}
        options["runtime_env"] = runtime_env
    return options
