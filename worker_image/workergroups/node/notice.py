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
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from workergroups.node.own_processes import about, all_pids, of_this_container, open_files, runs
from workergroups_api.vocabulary import Variable

REASON = "Kubernetes ends its pod"
KV_NAMESPACE = "workergroups-notices"
LOOK_SECONDS = 0.1
RAYLET_SECONDS = 2.0
"""A raylet may need so long to end."""
# KubeRay sets it. Elsewhere, somebody tries a notice, and wants to keep the node.
_IN_POD = "RAY_CLOUD_INSTANCE_ID"
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
    """Let the node's end wait for this process, but not for its forks; return what ends that."""
    held = [os.memfd_create(_WAITS)]

    def answered() -> None:
        while held:
            os.close(held.pop())

    os.register_at_fork(after_in_child=answered)
    return answered


def watch(tell: Callable[[Notice], None]) -> None:
    """Tell of the notice once this node has given it, and return."""
    while (notice := current()) is None:
        time.sleep(LOOK_SECONDS)
    tell(notice)


def begin() -> None:
    """Note that the node ends with this process, and withdraw the notice of an earlier container of the pod."""
    os.memfd_create(_RAY_START)
    if is_expected():
        Path(os.environ[Variable.NOTICE]).unlink(missing_ok=True)


def give(seconds: float) -> None:
    """Give this node notice, and end it when nobody waits any more, or after that many seconds."""
    notice = Notice(REASON, time.time() + seconds)
    file = Path(os.environ[Variable.NOTICE])
    unfinished = file.with_name(f"{file.name}.{os.getpid()}")
    unfinished.write_bytes(to_record(notice))
    unfinished.replace(file)
    while notice.seconds and holders(_WAITS):
        time.sleep(LOOK_SECONDS)
    if _IN_POD in os.environ:
        end_node(holders(_RAY_START))


def holders(file: str) -> list[int]:
    """Return the processes of this container that have the file in memory open."""
    return of_this_container(pid for pid, _, _ in open_files(file))


def end_node(ray_start: Collection[int]) -> None:
    """End the node, and then its container: the first process there is a shell that passes no signal on.

    A raylet that is asked to end tells the GCS, which would miss it only after seconds. Ray's own start goes on without
    such a raylet, and ends with one that is killed.
    """
    raylets = of_this_container(filter(_is_raylet, all_pids()))
    _kill(raylets, signal.SIGTERM if ray_start else signal.SIGKILL)
    deadline = time.monotonic() + RAYLET_SECONDS
    while any(map(runs, raylets)) and time.monotonic() < deadline:
        time.sleep(LOOK_SECONDS)
    _kill(ray_start, signal.SIGKILL)


def _is_raylet(pid: int) -> bool:
    with suppress(OSError):
        return about(pid, "comm").strip() == "raylet"
    return False


def _kill(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        with suppress(OSError):  # it has ended
            os.kill(pid, number)


if __name__ == "__main__":
    if len(sys.argv) != 2 or not is_expected():
        sys.exit(
            f"set {Variable.NOTICE.value} as for this Ray, and say for how many seconds: python -m {__spec__.name} 30"
        )
    give(float(sys.argv[1]))
