"""Report on the worker processes of this node: ``python -m workergroups.processes.on_node list|stacks|logs [ID...]``.

``stacks`` takes process ids, ``logs`` Ray's ids of workers, also of dead ones. It needs only the kernel and the
processes' signal handlers, and imports nothing of Ray.
"""

from __future__ import annotations

import sys
from typing import Any

from workergroups.answering import give
from workergroups.processes.node_processes import node_processes
from workergroups.ray_private.worker_logs import last_lines

from .stack_dump import dump_processes


def answer(question: str, *ids: str) -> Any:
    """Return the worker processes, or stacks by process id, or the last lines by worker id."""
    if question == "stacks":
        return dump_processes(map(int, ids))
    if question == "logs":
        found = {worker_id: last_lines(worker_id) for worker_id in ids}
        return {worker_id: text.decode(errors="replace") for worker_id, text in found.items() if text is not None}
    return node_processes()


if __name__ == "__main__":
    give(answer, *sys.argv[1:])
