"""How others hand weights over: torch's broadcast of each tensor, and verl's checkpoint engine, both over NCCL.

NCCL has one rank of a group on a device, so trainer and rollout ranks must have devices of their own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from workergroups import Dispatch, Worker, get, register

# verl's default, and its engine's name.
_BUCKET = 2048 << 20
_GROUP = "weights"


class Others(Worker):
    """What ranks do for that. The trainer's rank 0 has all weights."""

    parts: dict[str, Any]
    training: bool
    engine: Any = None

    @register(Dispatch.ONE_TO_ALL, blocking=False)
    def join(self, address: str, first: int, ranks: int) -> None:
        """Form torch's group."""
        import torch.distributed as dist

        dist.init_process_group("nccl", init_method=f"tcp://{address}", rank=first + self.rank, world_size=ranks)

    @register(Dispatch.ONE_TO_ALL, blocking=False)
    def broadcast(self) -> None:
        """Send each tensor to all ranks, which keep their parts of it."""
        import torch
        import torch.distributed as dist

        for part in self.parts.values():
            whole = part.tensor if self.training else part.tensor.new_empty(part.shape)
            dist.broadcast(whole, 0)
            if not self.training:
                self.keep(part, whole)
        torch.cuda.synchronize()

    def keep(self, part: Any, whole: Any) -> None:
        """Fill a part from the whole tensor."""
        for dim, (start, size) in enumerate(zip(part.start, part.tensor.shape, strict=True)):
            whole = whole.narrow(dim, start, size)
        part.tensor.copy_(whole)

    @register(Dispatch.ONE_TO_ALL)
    def prepare(self) -> Any:
        """Let verl's engine allocate its buckets."""
        from verl.checkpoint_engine import NCCLCheckpointEngine

        if self.engine is None:
            self.engine = NCCLCheckpointEngine(_BUCKET, group_name=_GROUP, is_master=self.training)
        return self.engine.prepare()

    @register(Dispatch.ONE_TO_ALL, blocking=False)
    def connect(self, topology: dict[str, list[Any]]) -> None:
        """Let verl's engine form its group, if it has none."""
        self.engine.init_process_group(**{name: of_ranks[self.rank] for name, of_ranks in topology.items()})

    @register(Dispatch.ONE_TO_ALL, blocking=False)
    def update(self) -> None:
        """Send or receive all weights by verl's engine."""
        asyncio.run(_send(self) if self.training else _receive(self))

    @register(Dispatch.ONE_TO_ALL)
    def finalize(self) -> None:
        """Let verl's engine free its buckets."""
        import torch

        torch.cuda.synchronize()
        self.engine.finalize()


# Not methods: Ray would run all methods of such a class in an event loop.
async def _send(rank: Others) -> None:
    await rank.engine.send_weights((name, part.tensor) for name, part in rank.parts.items())


async def _receive(rank: Others) -> None:
    async for name, whole in rank.engine.receive_weights():
        rank.keep(rank.parts[name], whole)


def _broadcast(trainer: Any, rollout: Any) -> Callable[[], Any]:
    """Form the group; return what hands the weights over."""
    address, ranks = f"{trainer.master_address}:{trainer.master_port}", 1 + rollout.world_size
    get([*trainer.join(address, 0, ranks), *rollout.join(address, 1, ranks)])
    return lambda: get([*trainer.broadcast(), *rollout.broadcast()])


def _verl(trainer: Any, rollout: Any) -> Callable[[], Any]:
    """Return what does an update as verl's manager does it."""

    def update() -> None:
        from verl.checkpoint_engine import NCCLCheckpointEngine

        metadata = [*trainer.prepare(), *rollout.prepare()]
        of_trainer, of_rollout = NCCLCheckpointEngine.build_topology(1, rollout.world_size, metadata)
        get([*trainer.connect(of_trainer), *rollout.connect(of_rollout)])
        get([*trainer.update(), *rollout.update()])
        trainer.finalize()
        rollout.finalize()

    return update


OTHERS = {"torch's broadcast, each tensor": _broadcast, "verl's checkpoint engine (NCCL)": _verl}
