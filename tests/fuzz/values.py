"""Values that users may write: any JSON, any Unicode, extreme numbers, dates, depths and sizes."""

import json
import random
import string
from collections.abc import Iterator
from typing import Any

# etcd's limit for a request, less what the API server adds.
MAX_BYTES = 1_400_000

TEXTS = (
    "",
    " ",
    "\x00",
    "\x7f\x85\u2028\u2029",
    "\ud800",
    "\udfff\ud800",
    "\U0001f33f" * 3,
    "a\u0301\u202e\u2066",
    "\ufffe\uffff\ufeff",
    "\x1b]52;c;cm0gLXJmIC8=\x07",
    "../../../../api/v1/namespaces/kube-system/secrets/x?a=",
    "a/b%2fc%00?d#e",
    "line\nbreak\r\n",
    "{{ .Values }} ${HOME} $(HOME) `id` %s %n",
    "null",
    "~",
    "0x10",
    "off",
    "1e400",
    "9" * 5000,
    "2026-11-23T00:00:00Z",
    "0000-00-00T00:00:00Z",
    "9999-12-31T23:59:59.999999999+23:59",
    "[" * 2000,
    '{"a":' * 500,
)
NUMBERS = (
    0,
    -1,
    1,
    2**31,
    2**53,
    2**63 - 1,
    -(2**63),
    0.5,
    -0.0,
    1e-320,
    1.7976931348623157e308,
    1e22,
    123456789.123456789,
)
DATES = (
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z",
    "1969-12-31T23:59:60Z",
    "2026-11-23T00:00:00.123456789+14:00",
    "2026-02-30T00:00:00Z",
)
_ALPHABETS = (
    string.ascii_lowercase + string.digits + "-",
    string.ascii_letters + string.digits + "_.",
    string.ascii_letters + string.digits + "-_./",
    string.digits,
    string.printable,
)


def text(choices: random.Random, longest: int = 200) -> str:
    """Return a text of at most `longest` characters."""
    chance = choices.random()
    if chance < 0.4:
        return choices.choice(TEXTS)[:longest]
    if chance < 0.5:
        return "".join(chr(choices.randrange(0x110000)) for _ in range(choices.randint(1, 20)))[:longest]
    alphabet = choices.choice(_ALPHABETS)
    length = min(longest, choices.choice((1, 2, 8, 40, 63, 64, 253, 256, longest)))
    return "".join(choices.choices(alphabet, k=length))


def scalar(choices: random.Random) -> Any:
    """Return a JSON value without members."""
    return choices.choice((None, True, False, choices.choice(NUMBERS), choices.choice(DATES), text(choices)))


def any_json(choices: random.Random, depth: int = 4) -> Any:
    """Return any JSON value, sometimes a deep, a wide or a large one."""
    chance = choices.random()
    if chance < 0.03:
        return nested(choices, choices.choice((50, 190, 300, 900, 1200, 3000, 9000)))
    if chance < 0.05:
        return choices.choice(([], {}, 0)) if depth < 4 else large(choices)
    if depth == 0 or chance < 0.4:
        return scalar(choices)
    members = range(choices.choice((0, 1, 2, 5)))
    if chance < 0.7:
        return [any_json(choices, depth - 1) for _ in members]
    return {text(choices, 60): any_json(choices, depth - 1) for _ in members}


def nested(choices: random.Random, depth: int) -> Any:
    """Return a value that is nested this deeply."""
    value: Any = scalar(choices)
    is_list = choices.random() < 0.5
    for _ in range(depth):
        value = [value] if is_list else {"a": value}
    return value


def large(choices: random.Random) -> Any:
    """Return a value of up to etcd's limit: long, wide, or many empty members."""
    size = choices.choice((20_000, 300_000, MAX_BYTES))
    return choices.choice(
        (
            lambda: "x" * size,
            lambda: "\u20ac" * (size // 3),
            lambda: [{}] * (size // 3),
            lambda: [0] * (size // 2),
            lambda: {f"k{number}": "" for number in range(size // 12)},
        )
    )()


def as_json(value: Any) -> bytes:
    """Return the value as JSON, however deep it is; half surrogate pairs stay escaped."""
    try:
        return json.dumps(value).encode()
    except RecursionError:
        return "".join(_pieces(value)).encode()


def _pieces(value: Any) -> Iterator[str]:
    """Write JSON with an explicit stack, so that no depth is too much."""
    waiting: list[Any] = [value]
    while waiting:
        piece = waiting.pop()
        if isinstance(piece, _Raw):
            yield piece
        elif isinstance(piece, dict) and piece:
            members = [part for key, item in piece.items() for part in (_Raw(json.dumps(key) + ":"), item, _Raw(","))]
            waiting += reversed([_Raw("{"), *members[:-1], _Raw("}")])
        elif isinstance(piece, list) and piece:
            items = [part for item in piece for part in (item, _Raw(","))]
            waiting += reversed([_Raw("["), *items[:-1], _Raw("]")])
        else:
            yield json.dumps(piece)


class _Raw(str):
    """Text that is already JSON."""
