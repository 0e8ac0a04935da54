"""The class of the ranks: each rank starts with its number, and adds what it gets."""

from workergroups import Dispatch, Worker, register


class Accumulator(Worker):
    def __init__(self):
        super().__init__()
        self.value = float(self.rank)

    def add(self, x):
        self.value += x
        return self.value

    @register(Dispatch.ONE_TO_ALL)
    def reset(self):
        self.value = float(self.rank)
