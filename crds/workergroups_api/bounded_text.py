"""The texts of statuses and reports, each with the bound that the CustomResourceDefinitions have for it.

Such a text may come from Ray, from an image or from whoever holds the agent's token. One that is too long is cut where
it is read or made. So it makes no status unreadable, and no status that is written exceeds what the API server accepts.
What people read has no control characters.
"""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from workergroups_common.ranges import cut_braces, cut_ranges
from workergroups_common.text import plain

MAX_TERM = 256
# Enough for an exception's last line and what surrounds it.
MAX_MESSAGE = 2048
# All nodes of the largest pool, in whatever ranges; and more ranks than the plan has births for, so that a group of
# which more ranks have failed is recreated as a whole.
MAX_RANGES = 2048
# The pods of the largest pool, whose names differ in their ends only.
MAX_PODS = 8192


def _at_most(limit: int, cut: Callable[[str, int], str]) -> BeforeValidator:
    return BeforeValidator(partial(_cut, limit, cut))


def _cut(limit: int, cut: Callable[[str, int], str], value: Any) -> Any:
    return cut(value, limit) if isinstance(value, str) else value


# What programs compare: states, reasons, names, UIDs, sessions, digests and versions.
Term = Annotated[str, Field(max_length=MAX_TERM), _at_most(MAX_TERM, plain)]
# What people read.
Message = Annotated[str, Field(max_length=MAX_MESSAGE), _at_most(MAX_MESSAGE, plain)]
# Numbers of nodes or ranks, see `ranges`.
Ranges = Annotated[str, Field(max_length=MAX_RANGES), _at_most(MAX_RANGES, cut_ranges)]
# Names of pods with braces, see `ranges.braces`.
Pods = Annotated[str, Field(max_length=MAX_PODS), _at_most(MAX_PODS, cut_braces)]
