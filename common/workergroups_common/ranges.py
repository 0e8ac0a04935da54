"""Short forms in which statuses and messages list nodes, ranks and pods: numbers as ranges, names with braces."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import takewhile

_SPAN = re.compile("([0-9]{1,5})(?:-([0-9]{1,5}))?")
_BRACES = re.compile(r"([^{},]*)\{([^{}]*)\}")


def ranges(numbers: Iterable[int]) -> str:
    """Return numbers as ranges, each once: [0, 1, 1, 2, 5] -> `0-2,5`."""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and number <= spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return _written(spans)


def numbers(text: str, below: int) -> Iterator[int]:
    """Yield the numbers of ranges that are less than `below`, the inverse of `ranges`.

    The text may be anybody's, so it ends at the first part that `ranges` would not have written there: then it names
    each number once, and can cost no more than the numbers that there may be.
    """
    for low, high in _spans(text, below):
        yield from range(low, high + 1)


def contains(text: str, number: int) -> bool:
    """Return whether ranges name the number."""
    return any(low <= number <= high for low, high in _spans(text))


def without(text: str, left_out: Collection[int], below: int) -> tuple[str, int]:
    """Return the ranges below a number without some numbers, and how many of these they named.

    The cost does not depend on how many numbers a range has.
    """
    rest: list[tuple[int, int]] = []
    out, found = sorted(left_out), 0
    for low, high in _spans(text, below):
        for number in out[bisect_left(out, low) : bisect_right(out, high)]:
            rest += [(low, number - 1)] if low < number else []
            low, found = number + 1, found + 1
        rest += [(low, high)] if low <= high else []
    return _written(rest), found


def cut_ranges(text: str, limit: int) -> str:
    """Return the first ranges, as many as have room in `limit` characters."""
    return text if len(text) <= limit else text[: limit + 1].rpartition(",")[0]


def _spans(text: str, below: int = 10**5) -> Iterator[tuple[int, int]]:
    """Yield the first and the last number of each range that are less than `below`, in ascending order."""
    end = -1
    for part in text.split(","):
        span = _SPAN.fullmatch(part)
        low, high = (int(span[1]), int(span[2] or span[1])) if span else (0, -1)
        if not end < low <= high or low >= below:
            return
        yield low, min(high, below - 1)
        end = high


def _written(spans: Iterable[Sequence[int]]) -> str:
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in spans)


def braces(names: Sequence[str]) -> str:
    """Return names as one text: [`a-x`, `a-y`] -> `a-{x,y}`. The names of a pool's pods differ in their ends only."""
    if len(names) < 2:
        return "".join(names)
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(min(names), max(names), strict=False)))
    return f"{names[0][:shared]}{{{','.join(name[shared:] for name in names)}}}"


def cut_braces(text: str, limit: int) -> str:
    """Return the text with the first of its names, as many as have room in `limit` characters."""
    kept = text[:limit].rpartition(",")[0]
    return text if len(text) <= limit else f"{kept}}}" if kept else ""


def expanded(text: str) -> list[str]:
    """Return the names in a text, the inverse of `braces`."""
    found = _BRACES.fullmatch(text)
    if found is None:
        return [text] if text else []
    return [found[1] + end for end in found[2].split(",")]
