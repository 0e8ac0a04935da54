"""A contender's driver process, and the handle through which the benchmark tells it what to do.

Each driver has its own process, so that one contender's imports and memory do not count for another.
"""

from __future__ import annotations

import gc
import logging
import multiprocessing
import time
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Self

import ray

from . import contenders


class Driver:
    """The driver process of one contender, connected to the Ray cluster at ``address``."""

    def __init__(self, name: str, address: str) -> None:
        self.name = name
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(name, address, theirs), daemon=True)
        self._process.start()
        theirs.close()

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid or 0

    def time(self, operation: str, *args: Any, repeat: int = 1) -> float:
        """Return the median of the seconds that an operation of the contender takes, ``repeat`` times in a row."""
        self._connection.send((operation, args, repeat))
        try:
            seconds = self._connection.recv()
        except EOFError:
            raise RuntimeError(f"the driver of {self.name} died in {operation}; see above") from None
        if isinstance(seconds, BaseException):
            raise RuntimeError(f"{self.name} failed in {operation}") from seconds
        return float(seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()
        self._process.join(timeout=10)
        self._process.kill()


def _serve(name: str, address: str, connection: Connection[Any, Any]) -> None:
    ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    contender = contenders.load(name)
    while True:
        try:
            operation, args, repeat = connection.recv()
        except EOFError:
            return
        method = getattr(contender, operation)
        gc.collect()
        try:
            connection.send(sorted(_seconds(method, args) for _ in range(repeat))[repeat // 2])
        except Exception as error:
            connection.send(RuntimeError(f"{type(error).__name__}: {error}"))


def _seconds(method: Any, args: tuple[Any, ...]) -> float:
    started = time.perf_counter()
    method(*args)
    return time.perf_counter() - started
