"""The end of what each process prints, in bounded memory, as Ray's log monitors send it.

They send it to the GCS, which sends it to subscribers. Nothing in these messages is unpickled. The text is a user's, so
it is never logged.

Lines may arrive before it is known which rank printed them. So the lines of all processes are held, and those of ranks
longer: see `Tails.claim`.
"""

import contextlib
import ctypes
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from typing import Any

from workergroups.ray_private.gcs import subscribe_to_logs

LOGGER = logging.getLogger(__name__)

# The address of a Ray node, and a process id on it.
Process = tuple[str, int]

MAX_BYTES = 64 * 1024
# In total: 64 KiB for each of 512 ranks; more ranks share this room.
MAX_RANK_BYTES = 512 * MAX_BYTES
# Of all processes that are not known to be ranks.
MAX_OTHER_BYTES = 4 * 1024 * 1024

GAP = "(lines are missing here: more was printed than the agent reads)"

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


class Tails:
    """The last bytes that processes have printed. One thread may add while another reads."""

    def __init__(self, each: int = MAX_BYTES, ranks: int = MAX_RANK_BYTES, others: int = MAX_OTHER_BYTES) -> None:
        self._each, self._max_ranks, self._max_others = each, ranks, others
        self._ranks: dict[Process, _Tail] = {}
        # The process that printed last comes last.
        self._others: OrderedDict[Process, _Tail] = OrderedDict()
        self._others_size = 0
        self._gaps = 0
        self._lock = threading.Lock()

    def add(self, process: Process, lines: Sequence[str]) -> None:
        """Append lines that a process has printed."""
        with self._lock:
            if (tail := self._ranks.get(process)) is not None:
                tail.add(lines, self._gaps, self._share())
            else:
                self._add_to_other(process, lines)

    def mark_gap(self) -> None:
        """Note that lines of any process may have been missed since the last one."""
        with self._lock:
            self._gaps += 1

    def claim(self, ranks: Collection[Process]) -> None:
        """Take these processes as the ranks, and all others as none."""
        with self._lock:
            known = self._ranks
            self._ranks = {each: known[each] if each in known else self._take_other(each) for each in ranks}
            for tail in self._ranks.values():
                tail.cut(self._share())

    def text(self, process: Process) -> bytes:
        """Return the last lines of a rank's process. The first line is complete, unless it is the only one."""
        with self._lock:
            tail = self._ranks.get(process)
            return tail.text() if tail is not None else b""

    def _share(self) -> int:
        return min(self._each, self._max_ranks // max(1, len(self._ranks)))

    def _add_to_other(self, process: Process, lines: Sequence[str]) -> None:
        tail = self._take_other(process)
        tail.add(lines, self._gaps, self._each)
        self._others[process] = tail
        self._others_size += len(tail)
        while self._others_size > self._max_others:
            _, oldest = self._others.popitem(last=False)
            self._others_size -= len(oldest)

    def _take_other(self, process: Process) -> "_Tail":
        tail = self._others.pop(process, None)
        if tail is None:
            return _Tail(self._gaps)
        self._others_size -= len(tail)
        return tail


class _Tail:
    """The tail of one process."""

    def __init__(self, gaps: int) -> None:
        # One buffer, since a million lines of one letter each would take fifty times their size.
        self._bytes = bytearray()
        self._is_cut = False
        self._gaps = gaps

    def __len__(self) -> int:
        # An empty tail counts as well, or there could be any number of them.
        return len(self._bytes) + 256

    def add(self, lines: Sequence[str], gaps: int, limit: int) -> None:
        if gaps != self._gaps:
            self._gaps = gaps
            lines = [GAP, *lines]
        self._bytes += _end_of(lines, limit + 1)
        self.cut(limit)

    def cut(self, limit: int) -> None:
        if len(self._bytes) > limit:
            del self._bytes[: len(self._bytes) - limit]
            self._is_cut = True

    def text(self) -> bytes:
        if not self._is_cut:
            return bytes(self._bytes)
        _, newline, rest = self._bytes.partition(b"\n")
        return bytes(rest) if newline and rest else bytes(self._bytes)


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


def _end_of(lines: Sequence[str], limit: int) -> bytes:
    """Return the last bytes of the lines, at least `limit` if there are as many, without encoding more than needed."""
    parts: list[bytes] = []
    size = 0
    for line in reversed(lines):
        parts.append(line[-limit:].encode(errors="replace") + b"\n")
        size += len(parts[-1])
        if size >= limit:
            break
    return b"".join(reversed(parts))


def _give_memory_back() -> None:
    """Let the GNU C library return freed memory, or a few megabytes of lines would enlarge this process for good."""
    with contextlib.suppress(AttributeError, OSError):  # another library
        ctypes.CDLL(None).malloc_trim(0)
