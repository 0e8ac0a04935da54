"""`RayWorkerGroup`: the ranks of one class on a resource pool, called together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import ray
from ray.actor import ActorHandle

from workergroups.debugger import announced
from workergroups.errors import InvalidTypeError
from workergroups.naming import RankName
from workergroups.protocol.packing import read_before_end
from workergroups.ray_private.cluster_state import all_dead
from workergroups.single_controller.base.decorator import RegisteredMethod, registered_methods
from workergroups.waiting import wait_for_end

from . import group_record
from .group_ranks import GroupRanks
from .method_table import restore_signatures, unpickle_methods
from .rank_class import RayClassWithInitArgs
from .rank_group import RankGroup, RoleGroup
from .ranks import check_worker_env, create_ranks
from .resource_pool import RayResourcePool, random_prefix

if TYPE_CHECKING:
    from typing_extensions import Self  # in typing since Python 3.11


class RayWorkerGroup(RankGroup):
    """Ranks of one class, one Ray actor on each of the pool's processes.

    The group has a method for each that the class registers with ``@register``; any other method of the class runs
    through ``execute_all`` and ``execute_rank_zero``. Constructing a group does not wait for its ranks: the first call
    does. ``close()``, or leaving a ``with`` block, ends the ranks that this group created.

    Attributes:
        incarnation (int | None): The number of these ranks' incarnation, for a group that `attach` returned.

    Args:
        resource_pool: Where the ranks run; ``None`` for a handle on ranks that exist (see ``from_detached``).
        ray_cls_with_init: The ranks' class and the arguments of its constructor.
        bin_pack: Whether the processes of one entry of the pool must be on one node.
        name_prefix: The start of the ranks' names; random by default.
        detached: Whether the ranks outlive the driver.
        worker_names: The names of ranks that exist, in rank order.
        worker_handles: Their handles, instead of finding them by name.
        ray_wait_register_center_timeout: Seconds within which rank 0 must publish where the ranks meet.
        master_addr: The address at which the ranks meet, given together with ``master_port``. By default, rank 0's
            process chooses both.
        master_port: The port at which the ranks meet.
        use_gpu: Whether each rank takes its share of a GPU; as the pool says by default.
        device_name: ``"cuda"``, ``"amd"``, ``"npu"``, or ``"cpu"`` for GPUs that exist only as numbers in Ray.
        worker_env: More environment variables for the ranks' processes.

    Raises:
        PlacementTimeoutError: The cluster lacks resources for the pool; the message names them.
        ValueError: ``worker_env`` sets a protected variable, or one of ``master_addr`` and ``master_port`` is missing.
        TypeError: The class's constructor does not accept the arguments.
    """

    def __init__(
        self,
        resource_pool: RayResourcePool | None = None,
        ray_cls_with_init: RayClassWithInitArgs | None = None,
        bin_pack: bool = True,
        name_prefix: str | None = None,
        detached: bool = False,
        worker_names: Sequence[str] | None = None,
        worker_handles: Sequence[ActorHandle] | None = None,
        ray_wait_register_center_timeout: float = group_record.RECORD_TIMEOUT,
        *,
        master_addr: str | None = None,
        master_port: str | None = None,
        use_gpu: bool | None = None,
        device_name: str = "cuda",
        worker_env: Mapping[str, str] | None = None,
    ) -> None:
        name_prefix = random_prefix() if name_prefix is None else name_prefix
        chosen_master = _master(master_addr, master_port)
        self._owns_ranks = resource_pool is not None
        if resource_pool is None:
            workers, names = _find_ranks(worker_names, worker_handles)
        elif not isinstance(resource_pool, RayResourcePool):
            kind = f"{type(resource_pool).__module__}.{type(resource_pool).__qualname__}"
            raise InvalidTypeError(
                f"resource_pool is a {kind}: create it with workergroups.RayResourcePool, or use the RayWorkerGroup of "
                "its package"
            )
        elif ray_cls_with_init is None:
            raise ValueError("a group on a resource pool needs ray_cls_with_init, the class of its ranks")
        else:
            names = _worker_names(resource_pool, ray_cls_with_init, name_prefix)
            # Refuse wrong arguments before the pool waits for its resources.
            ray_cls_with_init.check_arguments()
            check_worker_env(worker_env or {})
            num_gpus = _gpu_share(resource_pool, use_gpu)
            workers = create_ranks(
                ray_cls_with_init,
                resource_pool.seats("STRICT_PACK" if bin_pack else "PACK", device_name),
                names=names,
                detached=detached,
                worker_env=worker_env,
                num_gpus=num_gpus,
                device_name=device_name,
                wg_prefix=name_prefix,
                master=chosen_master,
            )
        ranks = GroupRanks(workers, names, record_timeout=ray_wait_register_center_timeout, master=chosen_master)
        if resource_pool is not None:
            resource_pool.note_ranks(ranks.actor_ids)
        super().__init__(
            ranks,
            _registered_methods(ranks, ray_cls_with_init),
            resource_pool=resource_pool,
            ray_cls_with_init=ray_cls_with_init,
            name_prefix=name_prefix,
            incarnation=_incarnation(names) if resource_pool is None else None,
        )

    @classmethod
    def from_detached(
        cls,
        name_prefix: str | None = None,
        worker_names: Sequence[str] | None = None,
        worker_handles: Sequence[ActorHandle] | None = None,
        ray_cls_with_init: RayClassWithInitArgs | None = None,
        **kwargs: Any,
    ) -> Self:
        """Return a handle on ranks that another group or process created.

        The class is optional: without it, the group gets the methods that the ranks themselves have published. Closing
        the handle leaves the ranks alone.
        """
        return cls(
            resource_pool=None,
            ray_cls_with_init=ray_cls_with_init,
            name_prefix=name_prefix,
            worker_names=worker_names,
            worker_handles=worker_handles,
            **kwargs,
        )

    def close(self) -> None:
        """End the ranks if this group created them, return when they are gone, and refuse further calls.

        Warns of ranks that Ray has not ended after 30 s.
        """
        if self._ranks.is_closed:
            return
        self._ranks.is_closed = True
        self._ranks.stop_notices()
        if not self._owns_ranks:
            return
        actor_ids = self._ranks.actor_ids
        try:
            read_before_end(actor_ids)
        finally:  # also if Ctrl-C ends the wait
            for worker in self._ranks.workers:
                ray.kill(worker)
        wait_for_end(lambda: all_dead(actor_ids), what=f"the ranks of group {self.name_prefix!r}")
        group_record.forget(actor_ids[0])
        announced.withdraw_all(actor_ids)


RayWorkerGroup.register(RoleGroup)


def _registered_methods(ranks: GroupRanks, rank_class: RayClassWithInitArgs | None) -> dict[str, RegisteredMethod]:
    if rank_class is not None:
        return registered_methods(rank_class.user_class)
    record = ranks.record()
    for worker in ranks.workers:
        restore_signatures(worker, record.signatures)
    return unpickle_methods(record.methods)


def _incarnation(names: Sequence[str]) -> int | None:
    """Return the incarnation of ranks with these names; ``None`` if they do not belong to a WorkerGroup."""
    first = RankName.parse(names[0]) if names else None
    return first.incarnation if first is not None else None


def _master(address: str | None, port: str | None) -> tuple[str, str] | None:
    if address is None and port is None:
        return None
    if address is None or port is None:
        raise ValueError("give both master_addr and master_port, or neither, and rank 0 chooses them")
    return address, str(port)


def _gpu_share(pool: RayResourcePool, use_gpu: bool | None) -> float:
    if use_gpu and not pool.use_gpu:
        raise ValueError("use_gpu=True needs a pool with GPUs: make the RayResourcePool with use_gpu=True")
    wanted = pool.use_gpu if use_gpu is None else use_gpu
    return 1 / pool.max_colocate_count if wanted else 0


def _worker_names(pool: RayResourcePool, rank_class: RayClassWithInitArgs, prefix: str) -> list[str]:
    """Return verl's names: prefix, class, the pool's entry and the process in it, as in ``Ab3xYzActor_0:3``."""
    name = f"{prefix}{rank_class.user_class.__name__}"
    return [f"{name}_{node}:{local_rank}" for node, count in enumerate(pool.store) for local_rank in range(count)]


def _find_ranks(
    names: Sequence[str] | None, handles: Sequence[ActorHandle] | None
) -> tuple[list[ActorHandle], list[str]]:
    if handles is None:
        if not names:
            raise ValueError("a group without a resource_pool needs worker_names or worker_handles of its ranks")
        handles = [ray.get_actor(name) for name in names]
    return list(handles), list(names or [])
