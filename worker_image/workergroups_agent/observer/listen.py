"""Listen to what workers print: Ray's log monitors send it to the GCS, which sends it to subscribers.

Nothing in these messages is unpickled. The text is a user's, so it is never logged.
"""

import contextlib
import ctypes
import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from workergroups.ray_private.gcs import subscribe_to_logs
from workergroups_agent.observer.tails import Tails

LOGGER = logging.getLogger(__name__)

# In each window, the thread may use BUDGET_SECONDS of CPU time. Then it unsubscribes until the next window: for a
# subscriber that does not read, the GCS would hold up to a gigabyte.
WINDOW_SECONDS = 5.0
BUDGET_SECONDS = 1.0
# Between two polls, so that one answer holds many small batches: most of the cost is the poll.
PAUSE_SECONDS = 0.1
RETRY_SECONDS = 1.0
STOP_SECONDS = 2.0
# Characters of a batch. The memory of larger batches is returned to the system at once.
LARGE = 1024 * 1024


class Listener:
    """A thread that adds what workers print to their tails, and reports when Ray's head does not answer."""

    def __init__(self, address: str, tails: Tails, tell_of_lost_head: Callable[[], None]) -> None:
        self._address = address
        self._tails = tails
        self._tell_of_lost_head = tell_of_lost_head
        self._thread = threading.Thread(target=self._run, name="listener", daemon=True)
        self._ends = threading.Event()
        self._subscriber: Any = None

    def start(self) -> None:
        """Listen until it is stopped."""
        self._thread.start()

    def stop(self) -> None:
        """Stop listening. Call this before the process ends: Ray aborts if Python ends the thread within Ray's code."""
        self._ends.set()
        if self._subscriber is not None:
            self._subscriber.close()
        self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        told: type[Exception] | None = None
        while not self._ends.is_set():
            try:
                self._listen_through_windows()
            except Exception as error:
                if type(error) is not told:
                    told = type(error)
                    LOGGER.warning("cannot read what ranks print: %s", told.__name__)
            self._tails.mark_gap()
            self._ends.wait(RETRY_SECONDS)

    def _listen_through_windows(self) -> None:
        """Read while a window's budget lasts, and then pause for the rest of the window."""
        while not self._ends.is_set():
            self._subscriber = subscribe_to_logs(self._address)
            try:
                until = self._listen()
            except Exception:
                self._tell_of_lost_head()  # at once: this process may have little time left
                raise
            finally:
                self._subscriber.close()
            self._tails.mark_gap()
            self._ends.wait(max(0.0, until - time.monotonic()))

    def _listen(self) -> float:
        """Read until a window's budget is spent; return when that window ends."""
        until = time.monotonic() + WINDOW_SECONDS
        limit = time.thread_time() + BUDGET_SECONDS
        left = 0  # batches of the latest answer that are not read yet
        while time.thread_time() < limit:
            if not left:
                self._ends.wait(PAUSE_SECONDS)
            batch = self._subscriber.poll()  # waits in C++
            if self._ends.is_set():
                break
            left = (left or self._subscriber.last_batch_size) - 1
            if not batch["ip"]:
                raise ConnectionError("Ray's log channel has closed: the GCS does not answer")
            if batch["pid"].isdecimal():
                self._tails.add((batch["ip"], int(batch["pid"])), batch["lines"])
            if sum(map(len, batch["lines"])) > LARGE:
                del batch
                _give_memory_back()
            if time.monotonic() > until:
                until = time.monotonic() + WINDOW_SECONDS
                limit = time.thread_time() + BUDGET_SECONDS
        return until


def _give_memory_back() -> None:
    """Let the GNU C library return freed memory, or a few megabytes of lines would enlarge this process for good."""
    with contextlib.suppress(AttributeError, OSError):  # another library
        ctypes.CDLL(None).malloc_trim(0)
