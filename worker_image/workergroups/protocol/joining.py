"""Joining the batches that ranks returned."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from typing import Any

from workergroups.errors import InvalidTypeError
from workergroups.lazy import torch


def join(batches: Sequence[Any]) -> Any:
    """Concatenate the rows of all batches: `DataProto`s, TensorDicts, or objects of a class that can join them.

    Such a class has a static or class method ``concat`` that takes a list, like verl's BatchMeta.

    Raises:
        TypeError: They have several types, or a type that cannot be joined.
    """
    first = batches[0]
    kinds = {type(batch).__name__ for batch in batches}
    if len(kinds) > 1:
        raise InvalidTypeError(
            f"the ranks returned values of several types, which do not join: {', '.join(sorted(kinds))}"
        )
    if isinstance(inspect.getattr_static(type(first), "concat", None), staticmethod | classmethod):
        return type(first).concat(list(batches))
    if _is_tensordict(first):
        return torch.cat(list(batches), dim=0)
    raise InvalidTypeError(
        f"the ranks returned {kinds.pop()}, which cannot be joined: return a DataProto, a TensorDict "
        "or a class with a static method concat, or use Dispatch.DP_COMPUTE_METRIC for one result per rank"
    )


def _is_tensordict(value: Any) -> bool:
    # Where there is a TensorDict, its module has been imported; importing it to find out would take seconds.
    tensordict = sys.modules.get("tensordict")
    return tensordict is not None and isinstance(value, tensordict.TensorDictBase)
