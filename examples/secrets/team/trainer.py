"""The class of the ranks, in a folder of the ConfigMap."""

import os

from team.settings import learning_rate

from workergroups import Dispatch, Worker, register


class Trainer(Worker):
    """Reads its settings from the environment."""

    def __init__(self) -> None:
        super().__init__()
        self.has_key = bool(os.environ["API_KEY"])

    @register(Dispatch.ONE_TO_ALL)
    def settings(self) -> tuple[bool, float]:
        """Return whether the rank has a key, and its learning rate."""
        return self.has_key, learning_rate()
