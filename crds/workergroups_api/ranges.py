"""Numbers of nodes or ranks as ranges, in which statuses and messages list them.

This module needs only the standard library, so that the library, which runs on the user's Python, can import it.
"""

import re
from collections.abc import Iterable, Iterator

_SPAN = re.compile("([0-9]{1,5})(?:-([0-9]{1,5}))?")


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
