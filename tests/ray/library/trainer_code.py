"""The users' code in ``test_attach``: importable where the ranks run, not where the attached driver runs."""

from __future__ import annotations

from workergroups import Dispatch, Execute, Worker, register


def halves(group, x):
    """Send ``x`` divided by the world size to each rank."""
    return ([x / group.world_size] * group.world_size,), {}


def total(group, output):
    return sum(output)


class Trainer(Worker):
    def __init__(self, start) -> None:
        super().__init__()
        self.value = start + self.rank

    @register(Dispatch.ONE_TO_ALL)
    def add(self, x):
        self.value += x
        return self.value

    @register(dispatch_mode=Dispatch.ALL_TO_ALL, execute_mode=Execute.RANK_ZERO)
    def head(self):
        return self.rank

    @register(dispatch_mode={"dispatch_fn": halves, "collect_fn": total})
    def half(self, x):
        return x

    def plain(self, x):
        return x + self.rank
