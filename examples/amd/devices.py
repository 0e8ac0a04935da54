"""Ranks that return the devices that they see."""

import os

from workergroups import Dispatch, Worker, register


class Devices(Worker):
    @register(Dispatch.ONE_TO_ALL)
    def visible(self):
        return os.environ.get("HIP_VISIBLE_DEVICES")
