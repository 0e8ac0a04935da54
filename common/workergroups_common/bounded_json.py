"""Reads JSON from elsewhere within limits, so that no text can exhaust the stack or the memory of the process.

The shape is measured on the text, before anything is built: a megabyte of `{}` would become 100 MB of Python objects.
"""

import json
import math
import re
from dataclasses import dataclass
from typing import Any, NoReturn

# Longer numbers take seconds to convert, and none of our fields needs one.
_MAX_DIGITS = 1000
_BEFORE_A_STRING = re.compile(rb'([^"]*)(?:"[^"]*"?)?')
_SQUARE = bytes.maketrans(b"{}", b"[]")
_NEITHER_BRACKET_COMMA_NOR_QUOTE = bytes(set(range(256)) - set(b'[]{},"'))


class RefusedJson(ValueError):
    """The text is not JSON, or exceeds a limit; the message says which."""


class ExceededLimit(RefusedJson):
    """The text is too large, too deep, or has too many values; it may be JSON."""


@dataclass(frozen=True)
class Limits:
    """How much JSON to read. Python parses at least 500 levels within its recursion limit."""

    size: int
    depth: int
    # Containers count as values, and so do the members of an object without their keys.
    values: int


def parse(data: bytes, limits: Limits) -> Any:
    """Return the value of a JSON text in UTF-8.

    Raises RefusedJson for everything else, numbers that Python or another reader of JSON cannot hold included.
    """
    check(data, limits)
    try:
        return json.loads(str(data, "utf-8"), parse_int=_integer, parse_float=_real, parse_constant=_no_number)
    except ValueError as error:
        raise RefusedJson(f"the text is not JSON: {error}") from None


def check(data: bytes, limits: Limits) -> None:
    """Raise ExceededLimit, or RefusedJson if brackets do not match; the text is measured and not read."""
    if len(data) > limits.size:
        raise ExceededLimit(f"the JSON has {len(data)} bytes, and may have {limits.size}")
    _check_shape(_shape(data), limits)


def _shape(data: bytes) -> bytes:
    """Return the brackets and commas outside of strings, in order, with all brackets as square ones.

    The steps each pass over the text in C, so that the worst text costs milliseconds for each megabyte.
    """
    without_escapes = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    marks = without_escapes.translate(_SQUARE, _NEITHER_BRACKET_COMMA_NOR_QUOTE)
    # Most strings hold no marks and vanish at once; then a string and what stands before it go together.
    outside = bytearray()
    for match in _BEFORE_A_STRING.finditer(marks.replace(b'""', b"")):
        outside += match[1]
    return bytes(outside)


def _check_shape(shape: bytes, limits: Limits) -> None:
    values = shape.count(b"[") + shape.count(b",") + 1
    if values > limits.values:
        raise ExceededLimit(f"the JSON has up to {values} values, and may have {limits.values}")
    brackets = shape.replace(b",", b"")
    # Each round removes the innermost pairs, and so one level.
    for _ in range(limits.depth):
        if not brackets:
            return
        brackets = brackets.replace(b"[]", b"")
    if b"[]" in brackets:
        raise ExceededLimit(f"the JSON is nested more than {limits.depth} levels deep")
    if brackets:
        raise RefusedJson("the text is not JSON: its brackets do not match")


def _integer(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise ValueError(f"a number has {len(digits)} digits, and may have {_MAX_DIGITS}")
    return int(digits)


def _real(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"the number {digits[:40]} is too large")
    return number


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")
