"""What a dispatch function tells its group, and the group its ranks, about one call: padding, and unwanted results.

These notes travel among the keywords of the call, under names that no user's argument has. There is no other way for
them: a dispatch function returns ``(args, kwargs)``, users wrap these functions and pass on what they return, and a
rank gets the arguments of a Ray actor's method and nothing else.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

_PADDING = "_workergroups_padding"
_DISCARD = "_workergroups_discard"


class Padding(NamedTuple):
    """How a batch was padded so that it divides over the ranks."""

    rows: int
    """The batch's length."""
    padded_rows: int
    """Its length with padding."""


def with_padding(kwargs: Mapping[str, Any], padding: Padding | None) -> dict[str, Any]:
    """Return the keywords with a note for the group: cut this padding off the result."""
    return dict(kwargs) if padding is None else {**kwargs, _PADDING: padding}


def take_padding(kwargs: dict[str, Any]) -> Padding | None:
    """Remove the note about padding from the keywords, and return it."""
    padding: Padding | None = kwargs.pop(_PADDING, None)
    return padding


def with_discards(kwargs: Mapping[str, Any], discards: Sequence[bool]) -> dict[str, Any]:
    """Return the keywords with a note for each rank, in rank order: whether nobody collects its result."""
    return {**kwargs, _DISCARD: list(discards)} if any(discards) else dict(kwargs)


def take_discard(kwargs: dict[str, Any]) -> bool:
    """Remove a rank's note from the keywords; return whether nobody collects its result."""
    return bool(kwargs.pop(_DISCARD, False))


def allowing_discard(signature: inspect.Signature) -> inspect.Signature:
    """Return the signature of a rank's method, against which Ray checks calls, with room for the rank's note."""
    parameters = list(signature.parameters.values())
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters):
        return signature
    discard = inspect.Parameter(_DISCARD, inspect.Parameter.KEYWORD_ONLY, default=False)
    return signature.replace(parameters=[*parameters, discard])
