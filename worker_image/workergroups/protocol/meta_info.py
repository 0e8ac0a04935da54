"""Merge the ``meta_info`` of batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workergroups.errors import InvalidValueError

from .equality import deep_equal


def merge_meta_info(infos: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the facts about all batches that are joined; their ``metrics`` become lists in the order of the batches.

    Raises:
        ValueError: A key has different values.
    """
    merged: dict[str, Any] = {}
    for index, info in enumerate(infos):
        for key, value in info.items():
            if key == "metrics":
                continue
            if key in merged and not deep_equal(merged[key], value):
                raise InvalidValueError(
                    f"Conflicting values for meta_info key {key!r}: {merged[key]!r} and, in batch {index}, {value!r}"
                )
            merged.setdefault(key, value)
    metrics = [info["metrics"] for info in infos if info.get("metrics") is not None]
    if metrics:
        # Chunks of one batch share its metrics: joining them again gives these back.
        same = all(value is metrics[0] for value in metrics)
        merged["metrics"] = metrics[0] if same and len(metrics) > 1 else _dict_of_lists(metrics)
    return merged


def _dict_of_lists(metrics: Sequence[Any]) -> dict[str, list[Any]]:
    flat = [entry for value in metrics for entry in (value if isinstance(value, list) else [value])]
    return {key: [entry[key] for entry in flat if key in entry] for entry in flat for key in entry}
