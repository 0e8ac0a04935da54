"""Ranks that stop where they are told to."""

from workergroups import Dispatch, Worker, register


class Debugged(Worker):
    def __init__(self, at_construction=()):
        super().__init__()
        if self.rank in at_construction:
            breakpoint()
        self.count = 0

    @register(Dispatch.ONE_TO_ALL)
    def step(self, ranks):
        total = 40
        if self.rank in ranks:
            breakpoint()
            total += 1
        total += 1
        return total

    @register(Dispatch.ONE_TO_ALL)
    def step_often(self, rank, times):
        for _ in range(times):
            if self.rank == rank:
                breakpoint()
        return times

    @register(Dispatch.ONE_TO_ALL)
    def raise_caught(self):
        try:
            self.fail()
        except LookupError:
            return "caught"

    @register(Dispatch.ONE_TO_ALL)
    def fail(self):
        wanted = "plums"
        raise LookupError(f"no {wanted}")
