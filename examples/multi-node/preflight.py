"""Ranks that say what they have, and reach each other through torch.distributed."""

from __future__ import annotations

import os
import time
from typing import Any

import torch

from workergroups import Dispatch, Worker, init_process_group, register

GIB = 2**30


class Preflight(Worker):
    def __init__(self) -> None:
        super().__init__()
        init_process_group()
        self.device = "cuda" if torch.cuda.is_available() else "cpu"

    @register(Dispatch.ONE_TO_ALL)
    def look(self) -> dict[str, Any]:
        """This rank's node and device, and what it finds of shared memory, checkpoints and environment."""
        shared_memory = os.statvfs("/dev/shm")
        return {
            "node": os.uname().nodename,
            "device": torch.cuda.get_device_name() if self.device == "cuda" else "CPU",
            "shared memory in GiB": shared_memory.f_blocks * shared_memory.f_frsize / GIB,
            "checkpoints": os.access("/checkpoints", os.W_OK),
            "WANDB_API_KEY": "WANDB_API_KEY" in os.environ,
        }

    @register(Dispatch.ONE_TO_ALL)
    def all_reduce(self, mebibytes: int) -> dict[str, float]:
        """The sum of all ranks' numbers, and how fast a tensor of that size is summed up."""
        total = torch.tensor([float(self.rank)], device=self.device)
        torch.distributed.all_reduce(total)
        tensor = torch.ones(mebibytes * 2**20 // 4, device=self.device)
        torch.distributed.all_reduce(tensor)  # the first one sets connections up
        start = time.perf_counter()
        torch.distributed.all_reduce(tensor)
        tensor[0].item()  # waits until the device is done
        return {"sum of ranks": total.item(), "GiB/s": mebibytes / 1024 / (time.perf_counter() - start)}
