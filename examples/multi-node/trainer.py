"""The smallest ranks that could train together: they communicate through torch.distributed."""

from __future__ import annotations

import torch

from workergroups import Dispatch, Worker, init_process_group, register


class Trainer(Worker):
    def __init__(self) -> None:
        super().__init__()
        init_process_group()
        self.device = "cuda" if torch.cuda.is_available() else "cpu"

    @register(Dispatch.ONE_TO_ALL)
    def step(self) -> float:
        """Return the sum of all ranks' numbers. Each rank gets it, as it would get the sum of gradients."""
        total = torch.tensor([float(self.rank)], device=self.device)
        torch.distributed.all_reduce(total)
        return total.item()
