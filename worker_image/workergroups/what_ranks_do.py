"""``python -m workergroups.what_ranks_do stacks|calls GROUP``: for those outside the cluster, as JSON.

The command line runs it in the head's pod. It makes no call of the ranks, so it answers while they hang.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import sys
from typing import Any

import ray

from .attaching import attach

_ATTACH_SECONDS = 10.0


def main(question: str, group: str) -> None:
    """Print the answer."""
    ray.init(address="auto", log_to_driver=False, logging_level=logging.ERROR)
    print(json.dumps(answer(question, group)))


def answer(question: str, group: str) -> Any:
    """Stacks by rank, or a list of calls."""
    attached = attach(group, timeout=_ATTACH_SECONDS)
    if question == "stacks":
        return attached.stacks()
    return [dataclasses.asdict(call) for call in attached.calls()]


if __name__ == "__main__":
    main(*sys.argv[1:])
