"""Short forms in which statuses and messages list nodes, ranks and pods: numbers as ranges, names with braces.

This module needs only the standard library, so that the library, which runs on the user's Python, can import it.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile

_SPAN = re.compile("([0-9]{1,5})(?:-([0-9]{1,5}))?")
_BRACES = re.compile(r"([^{},]*)\{([^{}]*)\}")


def ranges(numbers: Iterable[int]) -> str:
    """Return numbers as ranges: [0, 1, 2, 5] -> `0-2,5`."""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in spans)


def numbers(text: str) -> Iterator[int]:
    """Yield the numbers of ranges, the inverse of `ranges`; end at the first part that is none."""
    for part in text.split(","):
        span = _SPAN.fullmatch(part)
        if span is None:
            return
        yield from range(int(span[1]), int(span[2] or span[1]) + 1)


def braces(names: Sequence[str]) -> str:
    """Return names as one text: [`a-x`, `a-y`] -> `a-{x,y}`. The names of a pool's pods differ in their ends only."""
    if len(names) < 2:
        return "".join(names)
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(min(names), max(names), strict=False)))
    return f"{names[0][:shared]}{{{','.join(name[shared:] for name in names)}}}"


def expanded(text: str) -> list[str]:
    """Return the names in a text, the inverse of `braces`."""
    found = _BRACES.fullmatch(text)
    if found is None:
        return [text] if text else []
    return [found[1] + end for end in found[2].split(",")]
