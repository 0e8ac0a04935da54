"""Joining the batches that ranks returned."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from workergroups.errors import InvalidTypeError
from workergroups.lazy import torch

from .data_proto import DataProto


def join(batches: Sequence[Any]) -> Any:
    """The rows of all batches, one below the other: of `DataProto`s or of TensorDicts.

    Raises:
        TypeError: They are not of one type, or of another.
    """
    first = batches[0]
    kinds = {type(batch).__name__ for batch in batches}
    if len(kinds) > 1:
        raise InvalidTypeError(
            f"the ranks returned values of several types, which do not join: {', '.join(sorted(kinds))}"
        )
    if isinstance(first, DataProto):
        return type(first).concat(list(batches))
    if _is_tensordict(first):
        return torch.cat(list(batches), dim=0)
    raise InvalidTypeError(
        f"the ranks returned {kinds.pop()}, which cannot be joined: return a DataProto or a TensorDict, "
        "or use Dispatch.DP_COMPUTE_METRIC for one result per rank"
    )


def _is_tensordict(value: Any) -> bool:
    # Where there is a TensorDict, its module has been imported; importing it to find out would take seconds.
    tensordict = sys.modules.get("tensordict")
    return tensordict is not None and isinstance(value, tensordict.TensorDictBase)
