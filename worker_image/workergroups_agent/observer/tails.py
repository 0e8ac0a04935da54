"""The end of what each process has printed, in bounded memory, whatever it prints.

Lines may come before anybody can say which rank their process is. So those of any process are held, and those of
ranks are held longer: see `claim`.
"""

import threading
from collections import OrderedDict
from collections.abc import Collection, Sequence

# The address of a Ray node, and a process id there.
Process = tuple[str, int]

MAX_BYTES = 64 * 1024
# Of all ranks: each of 512 may have its 64 KiB, and of more each has less.
MAX_RANK_BYTES = 512 * MAX_BYTES
# Of all processes that are no ranks, or not known to be.
MAX_OTHER_BYTES = 4 * 1024 * 1024

GAP = "(lines are missing here: more was printed than the agent reads)"


class Tails:
    """The last bytes of processes. One thread may add while another reads."""

    def __init__(self, each: int = MAX_BYTES, ranks: int = MAX_RANK_BYTES, others: int = MAX_OTHER_BYTES) -> None:
        self._each, self._max_ranks, self._max_others = each, ranks, others
        self._ranks: dict[Process, _Tail] = {}
        # In the order in which they have printed.
        self._others: OrderedDict[Process, _Tail] = OrderedDict()
        self._others_size = 0
        self._gaps = 0
        self._lock = threading.Lock()

    def add(self, process: Process, lines: Sequence[str]) -> None:
        """What a process has printed after what it had."""
        with self._lock:
            if (tail := self._ranks.get(process)) is not None:
                tail.add(lines, self._gaps, self._share())
            else:
                self._add_to_other(process, lines)

    def mark_gap(self) -> None:
        """Whatever comes next, from whomever, something before it was not read."""
        with self._lock:
            self._gaps += 1

    def claim(self, ranks: Collection[Process]) -> None:
        """These processes are the ranks, and no others."""
        with self._lock:
            known = self._ranks
            self._ranks = {each: known[each] if each in known else self._take_other(each) for each in ranks}
            for tail in self._ranks.values():
                tail.cut(self._share())

    def text(self, process: Process) -> bytes:
        """The last lines of a rank's process; the first of them is whole, unless there is but one."""
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
    """One process's."""

    def __init__(self, gaps: int) -> None:
        # One buffer, not many lines: a million of one letter each would take fifty times their size.
        self._bytes = bytearray()
        self._is_cut = False
        self._gaps = gaps

    def __len__(self) -> int:
        # What an empty one takes counts too, or there could be any number of them.
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


def _end_of(lines: Sequence[str], limit: int) -> bytes:
    """Their last bytes, at least so many if there are; of long lines, not more is looked at."""
    parts: list[bytes] = []
    size = 0
    for line in reversed(lines):
        parts.append(line[-limit:].encode(errors="replace") + b"\n")
        size += len(parts[-1])
        if size >= limit:
            break
    return b"".join(reversed(parts))
