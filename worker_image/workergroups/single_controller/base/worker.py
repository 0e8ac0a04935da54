"""`Worker`: the base class of ranks. It knows its rank from the environment that its group set up."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from .decorator import Dispatch, Execute, register


class Worker:
    """One rank of a worker group.

    A rank's process has these environment variables before its constructor runs (whether or not its class is a
    `Worker`): ``RANK`` and ``WORLD_SIZE``; ``MASTER_ADDR`` and ``MASTER_PORT``, rank 0's node and a port that is kept
    free for rank 0's process; ``RAY_LOCAL_RANK`` and ``RAY_LOCAL_WORLD_SIZE``, the rank's place among the group's ranks
    on its node; ``LOCAL_RANK`` and ``LOCAL_WORLD_SIZE``, its place among the processes that see the same devices, which
    is 0 of 1 since each rank sees its own device only (so ``torch.cuda.set_device(LOCAL_RANK)`` is right);
    ``WG_PREFIX``; and the accelerator's visible-devices variable.

    Args:
        cuda_visible_devices: Overrides the visible devices, a comma-separated list of indices.

    Raises:
        RuntimeError: The process is no rank: nothing set the variables.
    """

    def __init__(self, cuda_visible_devices: str | None = None) -> None:
        try:
            self._rank = int(os.environ["RANK"])
            self._world_size = int(os.environ["WORLD_SIZE"])
            self._master_addr = os.environ["MASTER_ADDR"]
            self._master_port = os.environ["MASTER_PORT"]
        except KeyError as missing:
            raise RuntimeError(
                f"{type(self).__name__} is a Worker and needs the environment of a rank, but {missing} is not set: "
                "create it through a RayWorkerGroup, or set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT"
            ) from None
        if cuda_visible_devices is not None:
            os.environ["CUDA_VISIBLE_DEVICES"] = cuda_visible_devices

    @property
    def rank(self) -> int:
        """This rank's number within its group, from 0."""
        return self._rank

    @property
    def world_size(self) -> int:
        """The number of ranks in the group."""
        return self._world_size

    def get_master_addr_port(self) -> tuple[str, str]:
        """The address and port at which the group's ranks meet, as ``MASTER_ADDR`` and ``MASTER_PORT`` give them."""
        return self._master_addr, self._master_port

    def get_cuda_visible_devices(self) -> str:
        """The devices that this rank sees, as ``CUDA_VISIBLE_DEVICES`` gives them; ``"not set"`` without any."""
        return os.environ.get("CUDA_VISIBLE_DEVICES", "not set")

    @register(dispatch_mode=Dispatch.ALL_TO_ALL, execute_mode=Execute.RANK_ZERO)
    def execute_func_rank_zero(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Run ``func(*args, **kwargs)`` in rank 0's process and return its result."""
        return func(*args, **kwargs)
