"""Read from several processes at once, until a deadline."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

from . import transports
from .memory import Span, Transfer, settle
from .transports import Address

_POLL_SECONDS = 0.0005


class Source(NamedTuple):
    """A process that has what is read."""

    name: str
    """For messages: ``rank 3 of rollout``."""
    node: str
    """What `node` returns there."""
    address: Address


class UnreadableError(OSError):
    """What some processes have cannot be read. Its text names them, and says why."""


def fetch(wanted: Iterable[tuple[Source, Sequence[Span]]], deadline: float) -> None:
    """Read spans of several sources.

    Raises:
        UnreadableError: Some cannot be read, or have not arrived by the deadline (of the monotonic clock).
    """
    wanted = list(wanted)
    settle(span.into for _, spans in wanted for span in spans)  # what is about to be overwritten may be in use
    left: list[tuple[Source, Transfer]] = []
    try:
        for source, spans in wanted:
            with _naming([source]):
                seconds = max(deadline - time.monotonic(), _POLL_SECONDS)
                is_near = source.node == node()
                left.append((source, transports.read(source.address, spans, same_node=is_near, seconds=seconds)))
        while left:
            for each in list(left):
                source, transfer = each
                with _naming([source]):
                    if transfer.is_done():
                        left.remove(each)
                        transfer.close()
            with _naming(source for source, _ in left):
                if left and time.monotonic() > deadline:
                    raise TimeoutError("not all has arrived in time")
            time.sleep(_POLL_SECONDS if left else 0)
    finally:
        for _, transfer in left:
            transfer.close()


@cache
def node() -> str:
    """Return what the processes of a pod have in common, also those that Ray has not started, such as vLLM's."""
    boot_id = Path("/proc/sys/kernel/random/boot_id")
    return f"{socket.gethostname()} {boot_id.read_text().strip() if boot_id.exists() else ''}"


def process_name() -> tuple[str, str]:
    """Return what this process is called in messages, and its group."""
    group, rank = os.environ.get("WG_PREFIX", ""), os.environ.get("RANK")
    name = f"process {os.getpid()}" if rank is None else f"rank {rank}"
    return (f"{name} of {group}" if group else name), group


@contextmanager
def _naming(sources: Iterable[Source]) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        names = ", ".join(source.name for source in sources)
        raise UnreadableError(f"cannot be read from {names}: {type(error).__name__}: {error}") from error
