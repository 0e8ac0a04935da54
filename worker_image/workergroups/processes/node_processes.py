"""The worker processes of this node, as the kernel lists them: no process of Ray has to answer.

Nothing of Ray is imported here, which would take a second.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from workergroups.node.own_processes import all_pids
from workergroups.processes.tables import NodeProcess

_LOG = re.compile(r".*/worker-(?P<worker_id>[0-9a-f]{56})-[0-9a-f]{8}-\d+\.err")
_TITLE = re.compile(r"ray::(?P<doing>.*)", re.DOTALL)
_STANDARD_ERROR = 2
_OF_RAY = ("IDLE", "SPILL_", "RESTORE_")


def node_processes() -> list[NodeProcess]:
    """Return the worker processes of this node that users' programs have, by process id."""
    found = map(_worker, all_pids())
    return [worker for worker in found if worker is not None and not worker.doing.startswith(_OF_RAY)]


def _worker(pid: int) -> NodeProcess | None:
    try:
        log = _LOG.fullmatch(os.readlink(f"/proc/{pid}/fd/{_STANDARD_ERROR}"))
        title = _TITLE.match(Path(f"/proc/{pid}/cmdline").read_text(errors="replace").rstrip("\0"))
    except OSError:  # it ended
        return None
    return NodeProcess(pid, log["worker_id"], title["doing"].removesuffix("()")) if log and title else None
