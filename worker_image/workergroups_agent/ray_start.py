"""`ray start` of a worker, in which two things take less time: `python3 -m workergroups_agent.ray_start start ...`.

Since Ray 2.60 a worker asks the GCS, every two seconds, for the head's node, and takes two directories from it. They are
known before the head's raylet has joined, and the executor announces them, so that both raylets start at the same time.
And processes with environment variables of their own are started without importing Ray twice (see `setup_worker`).
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ray._private.node
from ray.scripts.scripts import main

from workergroups_agent import head_directories

# Then Ray asks in its own way, and reports what is wrong.
SECONDS = 20.0
POLL_SECONDS = 0.1
_SETUP_WORKER = str(Path(__file__).parent / "setup_worker.py")
_REPLACED = "get_all_node_info_until_retrieved"


class Node(ray._private.node.Node):
    """Ray's, with another program that starts worker processes."""

    def __init__(self, ray_params: Any, *positional: Any, **named: Any) -> None:
        """Start the node's processes, as Ray does."""
        ray_params.update_if_absent(setup_worker_path=_SETUP_WORKER)
        super().__init__(ray_params, *positional, **named)


def asking_sooner(theirs: Callable[..., Any]) -> Callable[..., Any]:
    """Ray's question for the head's node, after a shorter one: what was announced or, if it is there, the node itself."""

    def ask(gcs: Any, *, timeout_per_retry: float | None = None, **choice: Any) -> Any:
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            if (directories := head_directories.announced(gcs)) is not None:
                return [directories]
            if nodes := gcs.get_all_node_info(timeout=timeout_per_retry, **choice):
                return nodes.values()
            time.sleep(POLL_SECONDS)
        return theirs(gcs, timeout_per_retry=timeout_per_retry, **choice)

    return ask


if __name__ == "__main__":
    ray._private.node.Node = Node
    # An older Ray asks for no node.
    if (theirs := getattr(ray._private.node, _REPLACED, None)) is not None:
        setattr(ray._private.node, _REPLACED, asking_sooner(theirs))
    main()
