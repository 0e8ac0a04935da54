"""The class of the recording's ranks: one of them stops at a breakpoint."""

from workergroups import Dispatch, Worker, register


class Trainer(Worker):
    """A trainer with something to look at."""

    @register(Dispatch.ONE_TO_ALL)
    def step(self, loss: float) -> float:
        """Return the loss; rank 2 pauses first."""
        if self.rank == 2:
            breakpoint()
        return loss
