"""verl 0.9.1."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

import ray
from ray.util.placement_group import remove_placement_group
from verl import DataProto
from verl.single_controller.base import Worker
from verl.single_controller.base.decorator import Dispatch, make_nd_compute_dataproto_dispatch_fn, register
from verl.single_controller.ray import RayClassWithInitArgs, RayResourcePool, RayWorkerGroup

from .batch_driver import BatchDriver


class Rank(Worker):
    """One rank."""

    def __init__(self, modules: Sequence[str], tensor_parallel: int) -> None:
        super().__init__()
        for module in modules:
            importlib.import_module(module)
        dp_rank, tp_rank = divmod(self.rank, tensor_parallel)
        self._register_dispatch_collect_info("mesh", dp_rank, is_collect=tp_rank == 0)

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def noop(self) -> None:
        """Do nothing."""

    @register(dispatch_mode=Dispatch.DP_COMPUTE_PROTO)
    def echo(self, batch: DataProto) -> DataProto:
        """Return the batch."""
        return batch

    @register(dispatch_mode=Dispatch.DP_COMPUTE_PROTO)
    def add_one(self, batch: DataProto) -> DataProto:
        """Return the batch plus one."""
        for tensor in batch.batch.values():
            tensor += 1
        return batch

    @register(dispatch_mode=make_nd_compute_dataproto_dispatch_fn("mesh"))
    def read(self, batch: DataProto) -> DataProto:
        """Return the first element of each row."""
        return DataProto.from_dict({"a": batch.batch["a"][:, 0].clone()})


class Driver(BatchDriver):
    """verl's `RayWorkerGroup`."""

    def __init__(self) -> None:
        super().__init__(DataProto)

    def create(self, ranks: int, modules: Sequence[str], tensor_parallel: int) -> None:
        """See `Contender`."""
        self._pool = RayResourcePool([ranks], use_gpu=False, max_colocate_count=1)
        rank_class = RayClassWithInitArgs(ray.remote(Rank), list(modules), tensor_parallel)
        self._group = RayWorkerGroup(self._pool, rank_class, device_name="cpu")
        self.noop()

    def close(self) -> None:
        """See `Contender`. verl has no such operation."""
        for rank in self._group.workers:
            ray.kill(rank)
        for placement_group in self._pool.get_placement_groups():
            remove_placement_group(placement_group)
