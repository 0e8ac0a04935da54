"""The ranks' class of these tests, shipped in a ConfigMap: seed 000's, on plain numbers."""

import os
import signal
import subprocess

import workergroups
from workergroups import Dispatch, Execute, register


class Accumulator(workergroups.Worker):
    """Starts from its rank."""

    def __init__(self, fail_on=None):
        super().__init__()
        if self.rank == fail_on:
            raise ValueError(f"rank {self.rank} was told to fail")
        self.value = self.rank

    def add(self, x):
        self.value += x
        return self.value

    @register(Dispatch.ONE_TO_ALL)
    def add_to_all(self, x):
        return self.add(x)

    @register(Dispatch.ONE_TO_ALL, execute_mode=Execute.RANK_ZERO)
    def read_rank_zero(self):
        return self.value

    def look(self):
        """What the process is and sees."""
        names = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "RANK", "WORLD_SIZE", "FLAVOUR")
        seen = {name: os.environ.get(name) for name in names}
        return seen | {"pid": os.getpid(), "pod": os.uname().nodename, "value": self.value}

    def leave(self):
        """Start a process with its own session, which Ray would let go on for ever."""
        return subprocess.Popen(["sleep", "86400"], start_new_session=True).pid

    def on_notice(self, notice):
        print(f"rank {self.rank} had {self.value} when it was told: {notice.reason}", flush=True)

    def die(self):
        os.kill(os.getpid(), signal.SIGKILL)
