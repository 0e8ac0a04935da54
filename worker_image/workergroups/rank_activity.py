"""Report stacks or unfinished calls of ranks: ``python -m workergroups.rank_activity stacks|calls GROUP``.

The command line runs this in the head's pod. It does not call the ranks, so it answers even while they hang.
"""

from __future__ import annotations

import dataclasses
import logging
import sys
from typing import Any

import ray

from .answering import give
from .attaching import attach
from .naming import NAMESPACE

_ATTACH_SECONDS = 10.0


def answer(question: str, group: str) -> Any:
    """Return the stacks by rank, or the list of calls."""
    # In this namespace, the agent does not count the program as a user's driver.
    ray.init(address="auto", namespace=NAMESPACE, log_to_driver=False, logging_level=logging.ERROR)
    attached = attach(group, timeout=_ATTACH_SECONDS)
    if question == "stacks":
        return attached.stacks()
    return [dataclasses.asdict(call) for call in attached.calls()]


if __name__ == "__main__":
    give(answer, *sys.argv[1:])
