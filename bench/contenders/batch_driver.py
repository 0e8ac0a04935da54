"""The common part of this library's and verl's drivers: the same calls, with each library's own batches."""

from __future__ import annotations

from typing import Any

from . import COLUMNS, ROW_ELEMENTS, rows_of


class BatchDriver:
    """Calls on a group whose methods take and return a `DataProto`.

    Args:
        data_proto: The `DataProto` of the group's library; this module imports neither.
    """

    _group: Any

    def __init__(self, data_proto: Any) -> None:
        self._data_proto = data_proto

    def prepare(self, payload_bytes: int) -> None:
        """See `Contender`."""
        import torch  # here, since ranks import this module as well, and some must import nothing else

        columns = {key: torch.ones(rows_of(payload_bytes), ROW_ELEMENTS) for key in COLUMNS}
        self._batch = self._data_proto.from_dict(columns)

    def noop(self) -> None:
        """See `Contender`."""
        self._group.noop()

    def echo(self) -> float:
        """See `Contender`."""
        return _first(self._group.echo(self._batch))

    def add_one(self) -> float:
        """See `Contender`."""
        return _first(self._group.add_one(self._batch))

    def share_by_mesh(self) -> None:
        """See `Contender`."""
        self._group.read(self._batch)


def _first(result: Any) -> float:
    return float(result.batch["a"][0, 0])
