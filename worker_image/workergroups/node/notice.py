"""Notice that this node is about to go: `python -m workergroups.node.notice SECONDS`, before its pod ends.

Kubernetes runs this in a pod that is deleted or evicted (`preStop`), and ends the pod's processes when it returns, or
when the pod's time is over. It writes the notice into a file, by which the node's ranks learn of it, and waits for
those that want to be told until they have answered. A rank shows that by a file in memory, which ends with its process.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from workergroups.node.own_processes import open_files
from workergroups_api.vocabulary import Variable

KV_NAMESPACE = "workergroups-notices"
"""The namespace of the GCS's key-value store in which nodes repeat their notices for drivers; the keys are pods."""
REASON = "its pod is being deleted"
LOOK_SECONDS = 0.1
_WAITS = "workergroups-waits-for-notice"
_RAY_START = "workergroups-ray-start"
_MOST_BYTES = 1024


@dataclass(frozen=True)
class Notice:
    """That a rank is about to end, with its node."""

    reason: str
    """Why, in words."""
    deadline: float
    """When at the latest, in seconds since the epoch by the clock of the rank's node."""

    @property
    def seconds(self) -> float:
        """How many seconds are left; 0 if none are."""
        return max(0.0, self.deadline - time.time())


def is_expected() -> bool:
    """Return whether this node would give notice."""
    return bool(os.environ.get(Variable.NOTICE))


def current() -> Notice | None:
    """Return this node's notice; ``None`` if it has given none."""
    try:
        return read(Path(os.environ[Variable.NOTICE]).read_bytes())
    except (KeyError, OSError):
        return None


def to_record(notice: Notice) -> bytes:
    """Return the notice as the file and the key-value store have it."""
    return json.dumps(asdict(notice)).encode()


def read(record: bytes | None) -> Notice | None:
    """Return the notice of a record; ``None`` if it is not one of ours."""
    if record is None or len(record) > _MOST_BYTES:
        return None
    try:
        found = json.loads(record)
    except (ValueError, RecursionError):
        return None
    match found:
        case {"reason": str(reason), "deadline": float(deadline)}:
            return Notice(reason, deadline)
    return None


def wait_for_me() -> Callable[[], None]:
    """Let the node's end wait for this process; return what ends that."""
    file = os.memfd_create(_WAITS)
    return lambda: os.close(file)


def watch(tell: Callable[[Notice], None]) -> None:
    """Tell of the notice once this node has given it, and return."""
    while (notice := current()) is None:
        time.sleep(LOOK_SECONDS)
    tell(notice)


def mark_ray_start() -> None:
    """Note that the node ends with this process."""
    os.memfd_create(_RAY_START)


def give(seconds: float) -> None:
    """Give this node notice, and end it when nobody waits any more, or when so many seconds are over."""
    notice = Notice(REASON, time.time() + seconds)
    file = Path(os.environ[Variable.NOTICE])
    unfinished = file.with_name(f"{file.name}.{os.getpid()}")
    unfinished.write_bytes(to_record(notice))
    unfinished.replace(file)
    while notice.seconds and open_files(_WAITS):
        time.sleep(LOOK_SECONDS)
    # The container's first process is a shell of KubeRay's, which passes no signal on, and ends when its command does.
    for pid, _, _ in open_files(_RAY_START):
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    give(float(sys.argv[1]))
