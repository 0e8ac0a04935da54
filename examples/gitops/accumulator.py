"""The class of the ranks: each rank starts with its number, and adds what it gets."""

import os

from workergroups import Dispatch, Execute, Worker, register


class Accumulator(Worker):
    def __init__(self):
        super().__init__()
        self.value = float(self.rank)

    def add(self, x):
        self.value += x
        return self.value

    @register(Dispatch.ONE_TO_ALL)
    def add_to_all(self, x):
        return self.add(x)

    @register(Dispatch.ONE_TO_ALL)
    def reset(self):
        self.value = float(self.rank)

    @register(Dispatch.ONE_TO_ALL)
    def devices(self):
        return os.environ.get("CUDA_VISIBLE_DEVICES")

    @register(Dispatch.ONE_TO_ALL, execute_mode=Execute.RANK_ZERO)
    def read_rank_zero(self):
        return self.value
