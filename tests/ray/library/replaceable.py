"""WorkerGroups whose incarnations a test starts itself, as the agent does."""

from __future__ import annotations

import os
import signal
import threading
import time

import ray

from workergroups import Dispatch, Execute, RayClassWithInitArgs, Worker, register
from workergroups.announcements import incarnations
from workergroups.naming import NAMESPACE, RankName
from workergroups.single_controller.ray.ranks import create_ranks

is_dispatching, may_dispatch = threading.Event(), threading.Event()
"""Of the driver: whether a call of ``count`` is being dispatched, and whether it may go on."""


def dispatched_slowly(group, *args, **kwargs):
    is_dispatching.set()
    assert may_dispatch.wait(30)
    return args, kwargs


def collected(group, output):
    return output


class Sleeper(Worker):
    @register(Dispatch.ONE_TO_ALL)
    def sleep(self):
        time.sleep(600)

    @register(Dispatch.ALL_TO_ALL, Execute.RANK_ZERO)
    def sleep_on_rank_zero(self):
        time.sleep(600)

    @register(Dispatch.DP_COMPUTE_PROTO, blocking=False)
    def sleep_in_background(self, batch):
        time.sleep(600)

    @register(Dispatch.ONE_TO_ALL)
    def where(self):
        return self.rank

    @register(dispatch_mode={"dispatch_fn": dispatched_slowly, "collect_fn": collected})
    def count(self):
        self.calls = getattr(self, "calls", 0) + 1
        return self.calls

    @register(Dispatch.DP_COMPUTE_PROTO)
    def read(self, batch):
        return batch

    @register(Dispatch.ONE_TO_ALL)
    def pid(self):
        return os.getpid()

    @register(Dispatch.ONE_TO_ALL)
    def meet(self):
        """Rank 0 notices the death of rank 1 before Ray does, as in a collective."""
        if self.rank == 1:
            time.sleep(0.5)
            os.kill(os.getpid(), signal.SIGKILL)
        raise RuntimeError("connection closed by peer")


class Trainer:
    def __init__(self, pool, name, cls=Sleeper):
        self.pool, self.name = pool, name
        self.rank_class = RayClassWithInitArgs(cls)
        self.ranks = []

    def start(self, incarnation, uid="uid1", ranks=2):
        names = [str(RankName(self.name, uid, incarnation, rank, 2)) for rank in range(2)]
        self.ranks = create_ranks(self.rank_class, self.pool.seats()[:ranks], names=names[:ranks], namespace=NAMESPACE)

    def announce(self, incarnation, uid="uid1"):
        incarnations.announce(self.name, uid, incarnation)

    def end(self):
        for rank in self.ranks:
            ray.kill(rank)

    def replace(self, incarnation, uid="uid1"):
        self.announce(incarnation, uid)
        self.end()
        self.start(incarnation, uid)


def in_thread(call):
    """Start the call; what is returned waits for its error."""
    errors = []

    def run():
        try:
            call()
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def error():
        thread.join(timeout=30)
        assert not thread.is_alive(), "the call goes on"
        [found] = errors
        return found

    return error
