"""Findings of a check: one subject on all nodes, and what is wrong with it on which node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

_NAMED = 8


@dataclass(frozen=True)
class CheckFinding:
    """What the check found about one subject."""

    subject: str
    is_well: bool
    message: str
    """The common value; or what is wrong, with the names of the nodes."""


def finding(subject: str, wrong: Sequence[str], well: str) -> CheckFinding:
    """Return a finding with the first of the problems, or with the message ``well`` if there are none."""
    if not wrong:
        return CheckFinding(subject, True, well)
    more = [f"and {len(wrong) - _NAMED} more"] if len(wrong) > _NAMED else []
    return CheckFinding(subject, False, "; ".join([*wrong[:_NAMED], *more]))


def differences(values: Mapping[str, str | None]) -> Iterator[str]:
    """Describe each node whose value differs from the most common one."""
    common, count = Counter(values.values()).most_common(1)[0]
    if count == 1 and len(values) == 2:
        yield ", ".join(f"{node} has {value or 'none'}" for node, value in values.items())
        return
    for node, value in values.items():
        if value != common:
            yield f"{node} has {value or 'none'}, and {count} of {len(values)} nodes have {common or 'none'}"
