"""Measure: ``python -m bench.batches MIB SENDERS RECEIVERS``, such as ``1024 2 2``.

The ranks share the devices of the machine in turn, the receivers beginning with the second one. Of Ray Direct
Transport, as many pairs of actors as there are receivers hand over the same bytes in all.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import ray
from ray.exceptions import RayError

from workergroups import DataProto, Dispatch, RayClassWithInitArgs, RayResourcePool, RayWorkerGroup, Worker, register

REPEATS = 7
ROWS = 48


class Rank(Worker):
    """Gives and takes parts of a batch of one column, on a device of its own if there are enough."""

    def __init__(self, way: str, mib: int, part: int, shift: int) -> None:
        super().__init__()
        import torch

        from workergroups.protocol import on_device
        from workergroups.transfers import transports

        if way == "host memory":
            on_device._SMALLEST = 2**62
        if way == "TCP":
            transports._ipc = lambda tensors: None
        torch.cuda.set_device((self.rank + shift) % torch.cuda.device_count())
        rows = ROWS // part
        self.batch = DataProto.from_dict(
            {"x": torch.ones(rows, mib * 2**20 // ROWS // 4, dtype=torch.float32, device="cuda")}
        )

    @register(Dispatch.ONE_TO_ALL)
    def is_up(self) -> None:
        """Return when the rank is up."""

    @register(Dispatch.DP_COMPUTE_PROTO, blocking=False)
    def give(self, ask: DataProto) -> Any:
        """Return this rank's part of the batch."""
        return self.batch

    @register(Dispatch.DP_COMPUTE_METRIC)
    def take(self, batch: DataProto) -> float:
        """Use the batch."""
        import torch

        column = batch.batch["x"]
        torch.cuda.synchronize()
        return float(column[-1, -1])


class Direct:
    """An actor that hands over a tensor by Ray Direct Transport."""

    def __init__(self, nbytes: int) -> None:
        import torch

        self.tensor = torch.ones(nbytes // 4, dtype=torch.float32, device="cuda")

    def up(self) -> None:
        """Return when the actor is up."""

    def give(self) -> Any:
        """Return the tensor."""
        return self.tensor

    def take(self, tensor: Any) -> float:
        """Use the tensor."""
        import torch

        torch.cuda.synchronize()
        return float(tensor[-1])


def timed(call: Callable[[], Any]) -> tuple[float, float]:
    """Return the seconds of the first call, and the median of the next ones."""
    seconds = []
    for _ in range(REPEATS + 1):
        began = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - began)
    return seconds[0], statistics.median(seconds[1:])


def row(title: str, mib: int, first: float, later: float) -> None:
    """Print a row of the table."""
    print(f"| {title} | {first:.2f} s | {later * 1000:.1f} ms | {mib / 1024 / later:.1f} GiB/s |", flush=True)


def hand_over(way: str, mib: int, senders: int, receivers: int) -> None:
    """Measure this library by one way, and the driver's own reading."""
    pools = [RayResourcePool([count], use_gpu=False, max_colocate_count=1) for count in (senders, receivers)]
    classes = [RayClassWithInitArgs(Rank, way, mib, count, at) for at, count in enumerate((senders, receivers))]
    with (
        pools[0],
        pools[1],
        RayWorkerGroup(pools[0], classes[0], name_prefix="senders") as sender,
        RayWorkerGroup(pools[1], classes[1], name_prefix="receivers") as receiver,
    ):
        ask = DataProto.from_dict(non_tensors={"row": list(range(senders))})
        receiver.is_up()
        row(way, mib, *timed(lambda: receiver.take(sender.give(ask))))
        if way in ("CUDA IPC", "host memory"):
            row(f"{way}, used by the driver", mib, *timed(lambda: sender.give(ask).get().batch["x"]))


def direct(transport: str, mib: int, pairs: int) -> None:
    """Measure Ray Direct Transport."""
    share = ray.cluster_resources()["GPU"] / pairs / 2
    actor = ray.remote(num_cpus=1, num_gpus=share, enable_tensor_transport=True)(Direct)
    givers = [actor.remote(mib * 2**20 // pairs) for _ in range(pairs)]
    takers = [actor.remote(4) for _ in range(pairs)]
    ray.get([each.up.remote() for each in givers + takers])

    def once() -> None:
        given = [each.give.options(tensor_transport=transport).remote() for each in givers]
        ray.get([taker.take.remote(ref) for taker, ref in zip(takers, given, strict=True)], timeout=60)

    try:
        row(f"Ray Direct Transport, {transport}", mib, *timed(once))
    finally:
        for each in givers + takers:
            ray.kill(each)


def main(mib: str, senders: str, receivers: str) -> None:
    """Hand over the same bytes in all ways, or in those of the variable ``WAYS``."""
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"  # all ranks see all devices, so that one is enough
    ray.init(address="local", num_cpus=32, include_dashboard=False)
    print(f"{mib} MiB, {senders} ranks to {receivers}\n| | first | later | |\n|---|--:|--:|--:|")
    # Between processes of one device, its NIXL is slower than host memory.
    for transport in ("cuda_ipc",) if ray.cluster_resources()["GPU"] < 2 else ("nixl",):
        try:
            direct(transport, int(mib), int(receivers))
        except (RayError, ValueError) as error:
            print(f"| {transport} | {str(error).strip().splitlines()[-1]} |", flush=True)
    for way in os.environ.get("WAYS", "CUDA IPC,TCP,host memory").split(","):
        try:
            hand_over(way, int(mib), int(senders), int(receivers))
        except RayError as error:
            print(f"| {way} | {str(error).strip().splitlines()[-1]} |", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
