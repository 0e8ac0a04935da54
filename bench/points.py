"""What is measured: a contender and raw Ray take turns, and the lower quartile of each one's rounds counts.

Other activity of a machine can only add to a time. If it does so in half of the rounds, a median measures
the machine, such as a virtual machine that returns free pages to its host. The quickest round of all is luck:
raw Ray's differs by 6 % between two drivers of the same run, their lower quartiles by 2 %. The medians are reported
as well.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from .cluster import bytes_ever_put
from .contenders import NAMES
from .driver import Driver
from .memory import PeakGrowth

MIB = 2**20
_CALLS = 40
"""No-op calls per round: a round's value is their median."""


@dataclass(frozen=True)
class Point:
    """One contender's value at one point of one comparison."""

    comparison: str
    ranks: int
    payload_mib: int | None
    contender: str
    value: float
    """Seconds, the lower quartile of the rounds, or bytes where the comparison is of memory."""
    ratio: float
    """The ratio to raw Ray's seconds or, where the comparison is of memory, to the payload."""
    target: float | None = None
    """The limit of this library's ratio."""
    median_ratio: float | None = None
    """The same ratio of the medians over the rounds, if there were several."""

    @property
    def missed(self) -> bool:
        """Whether this is our own point, and over its target."""
        return self.contender == "ours" and self.target is not None and self.ratio > self.target

    def __str__(self) -> str:
        if self.contender == "raw" and self.median_ratio is not None:
            return self._shown_value
        of_medians = "" if self.median_ratio is None else f"; of medians {self.median_ratio:.2f}x"
        return f"{self._shown_value} ({self.ratio:.2f}x{of_medians})"

    @property
    def _shown_value(self) -> str:
        if self.median_ratio is None:
            return f"{self.value / MIB:.0f} MiB"
        return f"{self.value * 1000:.1f} ms" if self.value < 1 else f"{self.value:.1f} s"


@contextmanager
def drivers(address: str, contenders: Sequence[str]) -> Iterator[list[Driver]]:
    """Start a new driver process for each contender."""
    with ExitStack() as stack:
        yield [stack.enter_context(Driver(name, address)) for name in contenders]


@contextmanager
def groups(
    address: str, contenders: Sequence[str], ranks: int, modules: Sequence[str], tensor_parallel: int = 1
) -> Iterator[list[Driver]]:
    """Start a new driver process with a group for each contender."""
    with drivers(address, contenders) as started:
        for driver in started:
            driver.time("create", ranks, modules, tensor_parallel)
        yield started
        for driver in started:
            driver.time("close")


def noop(started: Sequence[Driver], ranks: int, rounds: int, target: float | None = None) -> list[Point]:
    """Measure a call that does nothing."""

    def calls(driver: Driver) -> float:
        return driver.time("noop", repeat=_CALLS)

    return _compare("no-op call", ranks, None, started, calls, rounds, target)


def creation(
    started: Sequence[Driver], ranks: int, modules: Sequence[str], rounds: int, target: float | None = None
) -> list[Point]:
    """Measure from the reservation of resources until all ranks, which import these modules, have answered."""
    comparison = "group creation" if modules else "group creation, no imports"

    def create(driver: Driver) -> float:
        seconds = driver.time("create", ranks, modules, 1)
        driver.time("close")
        return seconds

    return _compare(comparison, ranks, None, started, create, rounds, target)


def echo(
    started: Sequence[Driver], ranks: int, payload_mib: int, rounds: int, target: float | None = None
) -> list[Point]:
    """Measure a batch that goes to the ranks by chunk and returns unchanged."""
    _prepare(started, payload_mib)
    return _compare("batch there and back", ranks, payload_mib, started, _timed("echo"), rounds, target)


def add_one(started: Sequence[Driver], ranks: int, payload_mib: int, rounds: int) -> list[Point]:
    """Measure a batch that goes to the ranks by chunk and returns with one added to each element."""
    _prepare(started, payload_mib)
    return _compare("batch there, plus one, and back", ranks, payload_mib, started, _timed("add_one"), rounds)


def driver_memory(started: Sequence[Driver], ranks: int, payload_mib: int, target: float) -> list[Point]:
    """Measure how much a new driver grows while a batch goes there and back, with the result, without the input."""
    own: list[Point] = []
    with_shared: list[Point] = []
    for driver in started:
        _prepare([driver], 1)
        driver.time("echo")
        _prepare([driver], payload_mib)
        with PeakGrowth(driver.pid) as memory:
            driver.time("echo")
        for points, comparison, grown, limit in (
            (own, "driver's own memory", memory.growth.own, target),
            (with_shared, "driver's memory with shared pages", memory.growth.with_shared, None),
        ):
            points.append(_of_payload(comparison, ranks, payload_mib, driver.name, grown, limit))
    return own + with_shared


def bytes_put(started: Sequence[Driver], dp: int, tp: int, payload_mib: int, target: float) -> list[Point]:
    """Measure the bytes of all objects that one call on a mesh stores."""
    _prepare(started, payload_mib)
    points = []
    for driver in started:
        driver.time("share_by_mesh")  # the first time, the group asks its ranks for the mesh
        before = bytes_ever_put()
        driver.time("share_by_mesh")
        put = bytes_ever_put() - before
        points.append(_of_payload(f"bytes put, dp {dp} x tp {tp}", dp * tp, payload_mib, driver.name, put, target))
    return points


def _compare(
    comparison: str,
    ranks: int,
    payload_mib: int | None,
    started: Sequence[Driver],
    seconds: Callable[[Driver], float],
    rounds: int,
    target: float | None = None,
) -> list[Point]:
    for driver in started:
        seconds(driver)  # the first time differs
    taken: dict[str, list[float]] = {driver.name: [] for driver in started}
    for number in range(rounds):
        for driver in started if number % 2 == 0 else reversed(started):
            taken[driver.name].append(seconds(driver))
    points = [_point(comparison, ranks, payload_mib, name, taken, target) for name in taken]
    size = "" if payload_mib is None else f", {payload_mib} MiB"
    print(f"{comparison}, {ranks} ranks{size}: {', '.join(f'{NAMES[p.contender]} {p}' for p in points)}", flush=True)
    return points


def _point(
    comparison: str,
    ranks: int,
    payload_mib: int | None,
    name: str,
    taken: Mapping[str, Sequence[float]],
    target: float | None,
) -> Point:
    own, raw = sorted(taken[name]), sorted(taken["raw"])
    quartile = len(own) // 4
    return Point(
        comparison,
        ranks,
        payload_mib,
        name,
        value=own[quartile],
        ratio=own[quartile] / raw[quartile],
        target=target,
        median_ratio=statistics.median(own) / statistics.median(raw),
    )


def _timed(operation: str) -> Callable[[Driver], float]:
    return lambda driver: driver.time(operation)


def _prepare(started: Sequence[Driver], payload_mib: int) -> None:
    for driver in started:
        driver.time("prepare", payload_mib * MIB)


def _of_payload(
    comparison: str, ranks: int, payload_mib: int, contender: str, value: int, target: float | None
) -> Point:
    return Point(comparison, ranks, payload_mib, contender, value, value / (payload_mib * MIB), target)
