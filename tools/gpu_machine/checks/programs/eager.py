"""A class whose module uses the device while it is imported, which nothing that forks afterwards may have done."""

import ranks
import torch

ONE = torch.ones(1, device="cuda")


class Eager(ranks.Rank):
    """A rank that adds what the import has left on the device."""

    def __init__(self) -> None:
        super().__init__()
        self.x = self.x + ONE
