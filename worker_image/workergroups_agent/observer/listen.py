"""Listen to what workers print: Ray's log monitors send it to the GCS, and that to who subscribes.

What comes is text in messages of Ray's own, of which nothing is unpickled. It is a user's: it is never logged.
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

# In each window the thread may use so much of a processor's time. When it is spent, nothing is read until the next
# one; and nobody is subscribed, or the GCS would hold for us up to a gigabyte of what is not read.
WINDOW_SECONDS = 5.0
BUDGET_SECONDS = 1.0
# Between two questions, so that many small batches come in one answer: most of the price is the question.
PAUSE_SECONDS = 0.1
RETRY_SECONDS = 1.0
STOP_SECONDS = 2.0
# Of one batch: the memory of larger ones is given back at once.
LARGE = 1024 * 1024


class Listener:
    """A thread that brings what workers print into their tails, and says so when Ray's head does not answer."""

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
        """Before the process ends: Python would cut the thread off in the midst of Ray's code, which aborts then."""
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
                    LOGGER.warning("what ranks print cannot be read: %s", told.__name__)
            self._tails.mark_gap()
            self._ends.wait(RETRY_SECONDS)

    def _listen_through_windows(self) -> None:
        """Read as long as a window's budget lasts, and then nothing for the rest of the window."""
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
        """Read until a window's budget is spent; returns when that window ends."""
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
    """The GNU C library keeps what is freed, and lines of some megabytes would make this process larger for good."""
    with contextlib.suppress(AttributeError, OSError):  # another library
        ctypes.CDLL(None).malloc_trim(0)
