"""`DataProtoFuture`: batches that ranks are still computing, to be passed on without the driver touching the data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from workergroups.deaths.results import get

from .joining import join


class DataProtoFuture:
    """The joined results of several ranks, or a chunk of them, while they are being computed.

    Passing one to another group's method sends the references; the rank that needs the data gets it.

    Args:
        collect_fn: Joins the list of results to one batch.
        futures: Ray references to the ranks' results, in order.
        dispatch_fn: Takes from the joined batch what this future stands for; all of it by default.
    """

    def __init__(
        self,
        collect_fn: Callable[[list[Any]], Any],
        futures: Sequence[Any],
        dispatch_fn: Callable[[Any], Any] | None = None,
    ) -> None:
        self.collect_fn = collect_fn
        self.futures = list(futures)
        self.dispatch_fn = dispatch_fn

    @staticmethod
    def concat(data: list[Any]) -> DataProtoFuture:
        """Return the future of the joined results of ranks."""
        return DataProtoFuture(join, data)

    def chunk(self, chunks: int) -> list[DataProtoFuture]:
        """Return futures of ``chunks`` chunks of equal length."""
        return [self._then(partial(_chunk, index, chunks)) for index in range(chunks)]

    def without_padding(self, rows: int, padded_rows: int) -> DataProtoFuture:
        """Return the future of the same batch without padding; see `DataProto.without_padding`."""
        return self._then(partial(_unpad, rows, padded_rows))

    def _then(self, dispatch_fn: Callable[[Any], Any]) -> DataProtoFuture:
        return DataProtoFuture(self.collect_fn, self.futures, partial(_both, self.dispatch_fn, dispatch_fn))

    def get(self) -> Any:
        """Wait for the data and return it.

        Raises:
            IncarnationReplacedError: It was computed by ranks of a WorkerGroup that have been replaced since.
        """
        batch = self.collect_fn(get(self.futures))
        return batch if self.dispatch_fn is None else self.dispatch_fn(batch)


def _chunk(index: int, chunks: int, batch: Any) -> Any:
    return batch.chunk(chunks)[index]


def _unpad(rows: int, padded_rows: int, batch: Any) -> Any:
    return batch.without_padding(rows, padded_rows)


def _both(first: Callable[[Any], Any] | None, second: Callable[[Any], Any], batch: Any) -> Any:
    return second(batch if first is None else first(batch))
