"""This library."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from workergroups import DataProto, Dispatch, RayClassWithInitArgs, RayResourcePool, RayWorkerGroup, Worker, register
from workergroups.single_controller.base.decorator import make_nd_compute_dataproto_dispatch_fn

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
    """A `RayWorkerGroup`."""

    def __init__(self) -> None:
        super().__init__(DataProto)

    def create(self, ranks: int, modules: Sequence[str], tensor_parallel: int) -> None:
        """See `Contender`."""
        self._pool = RayResourcePool([ranks], use_gpu=False, max_colocate_count=1)
        self._group = RayWorkerGroup(self._pool, RayClassWithInitArgs(Rank, list(modules), tensor_parallel))
        self.noop()

    def close(self) -> None:
        """See `Contender`."""
        self._group.close()
        self._pool.close()
