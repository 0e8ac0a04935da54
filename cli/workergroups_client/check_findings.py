"""One thing that was looked at on all nodes: well, or what is wrong with it, and where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

_NAMED = 8


@dataclass(frozen=True)
class CheckFinding:
    """What was found about one subject."""

    subject: str
    is_well: bool
    message: str
    """What there is; or what is wrong, with the nodes' names."""


def finding(subject: str, wrong: Sequence[str], well: str) -> CheckFinding:
    """What is wrong, the first of it by name; or what is to be said if nothing is."""
    if not wrong:
        return CheckFinding(subject, True, well)
    more = [f"and {len(wrong) - _NAMED} more"] if len(wrong) > _NAMED else []
    return CheckFinding(subject, False, "; ".join([*wrong[:_NAMED], *more]))


def differences(values: Mapping[str, str | None]) -> Iterator[str]:
    """The nodes whose value is not the most common one, each with what it and the others have."""
    common, count = Counter(values.values()).most_common(1)[0]
    if count == 1 and len(values) == 2:
        yield ", ".join(f"{node} has {value or 'none'}" for node, value in values.items())
        return
    for node, value in values.items():
        if value != common:
            yield f"{node} has {value or 'none'}, and {count} of {len(values)} nodes have {common or 'none'}"
