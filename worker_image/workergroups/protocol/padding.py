"""Padding batches so that they divide."""

from __future__ import annotations

from workergroups.errors import InvalidValueError

from .data_proto import DataProto


def pad_dataproto_to_divisor(data: DataProto, size_divisor: int) -> tuple[DataProto, int]:
    """Return a batch whose length ``size_divisor`` divides, padded with its own first rows; and how many were added.

    An empty batch is returned as it is.
    """
    rows = len(data)
    missing = -rows % size_divisor
    if missing == 0:
        return data, 0
    parts = [data]
    while missing > 0:
        parts.append(data[: min(missing, rows)])
        missing -= rows
    return DataProto.concat(parts), -rows % size_divisor


def unpad_dataproto(data: DataProto, pad_size: int) -> DataProto:
    """Return the batch without its last ``pad_size`` rows.

    Raises:
        ValueError: The batch has fewer rows, or ``pad_size`` is negative.
    """
    if not 0 <= pad_size <= len(data):
        raise InvalidValueError(f"{pad_size} rows of padding cannot be cut off {len(data)} rows")
    return data[:-pad_size] if pad_size else data
