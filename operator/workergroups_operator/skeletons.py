"""The few fields that kopf and our handlers need of an object, read without building the rest of it.

Users write most of an object's content. `json.loads` would build all of it, at up to a hundred times its size, and
fails on deep nesting. Here a parser in C reads the text, with its stack on the heap, and skips what no shape names. So
what a user wrote determines neither the memory that an object costs nor for how long it blocks the event loop.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import ijson

from workergroups_api.names import CLUSTER_LABEL, DOUBTS_ANNOTATION, HEAD_ANNOTATION, SESSION_ANNOTATION

# Other tasks run after each piece. The slowest piece takes about 5 ms.
PIECE_BYTES: Final = 32 * 1024
# Longer texts are ignored. A name has up to 253 characters; the token that continues a list may have some hundred.
LONGEST_TEXT: Final = 4096
# Longer strings are cut on their way to the parser. A character takes 12 bytes at most, as two escape sequences. So
# what is left has more than LONGEST_TEXT characters, and is ignored.
_LONGEST_STRING: Final = 12 * LONGEST_TEXT
_REST_OF_STRING: Final = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
_PART_OF_CHARACTER: Final = re.compile(rb"(?:[\xc0-\xff]|[\xe0-\xff][\x80-\xbf]|[\xf0-\xff][\x80-\xbf]{2})\Z")
# A group names 16 pools at most, but the CustomResourceDefinition of an earlier version may have allowed more.
MOST_POOLS: Final = 64


class UnexpectedAnswer(ValueError):
    """The API server sent something other than what was asked for."""


class Text:
    """A shape: a string."""


class Number:
    """A shape: a whole number."""


@dataclass(frozen=True)
class Each:
    """A shape: a list whose items have a shape. Items beyond `at_most` are ignored."""

    shape: "Shape"
    at_most: int | None = None


Shape = type[Text] | type[Number] | Each | Mapping[str, "Shape"]

OBJECT: Final[Shape] = {
    "apiVersion": Text,
    "kind": Text,
    "metadata": {
        "namespace": Text,
        "name": Text,
        "uid": Text,
        "resourceVersion": Text,
        "labels": {CLUSTER_LABEL: Text},
        "annotations": {DOUBTS_ANNOTATION: Text, HEAD_ANNOTATION: Text, SESSION_ANNOTATION: Text},
    },
    "spec": {
        # Fields of pools, groups, Leases and CustomResourceDefinitions.
        "clusterName": Text,
        "pools": Each({"name": Text}, at_most=MOST_POOLS),
        "holderIdentity": Text,
        "renewTime": Text,
        "group": Text,
    },
    # Fields of the Status in an ERROR event.
    "reason": Text,
    "message": Text,
}
# What the operator reads of an object that exceeds the limits, to write its status.
CONDITIONED: Final[Shape] = {
    "metadata": {
        "namespace": Text,
        "name": Text,
        "uid": Text,
        "resourceVersion": Text,
        "generation": Number,
        "creationTimestamp": Text,
        "deletionTimestamp": Text,
    },
    "spec": {"clusterName": Text, "pools": Each({"name": Text}, at_most=MOST_POOLS)},
    "status": {
        "observedGeneration": Number,
        "conditions": Each(
            {
                "type": Text,
                "status": Text,
                "reason": Text,
                "message": Text,
                "observedGeneration": Number,
                "lastTransitionTime": Text,
            },
            at_most=16,
        ),
    },
}
EVENT: Final[Shape] = {"type": Text, "object": OBJECT}
LIST: Final[Shape] = {
    "apiVersion": Text,
    "kind": Text,
    "metadata": {"resourceVersion": Text, "continue": Text},
    "items": Each(OBJECT),
}

_OPENING = frozenset(("start_map", "start_array"))
_CLOSING = frozenset(("end_map", "end_array"))


class Skeleton:
    """The part of one JSON value that fits a shape; parts of another type than their shape are ignored."""

    def __init__(self, shape: Shape) -> None:
        self._builder = _Builder(shape)
        self._cutter = LongStrings()
        # Python's garbage collector does not see what a parser in C holds. So the parser must not reach this object,
        # which holds the parser: nothing would ever free them.
        self._parser = ijson.basic_parse_coro(self._builder)

    def feed(self, text: bytes) -> None:
        """Read the next part of the text."""
        self._send(self._cutter.cut(text))

    def _send(self, text: bytes) -> None:
        try:
            if text:  # To the parser, nothing is the end.
                self._parser.send(text)
        except Exception as error:  # ijson raises a dozen kinds, and Python's own
            raise UnexpectedAnswer(f"the text is not JSON: {str(error)[:200]}") from None

    def end(self) -> Any:
        """Return the value; None if its type is not that of the shape."""
        self._send(self._cutter.held)
        try:
            self._parser.close()
        except Exception as error:
            raise UnexpectedAnswer(f"the text is not JSON: {str(error)[:200]}") from None
        return self._builder.roots[0] if self._builder.roots else None


class LongStrings:
    """Cuts long strings out of a JSON text that comes in pieces.

    With each piece, the parser reads a string that has not ended again from its beginning: 9 s for a string of 8 MB.
    """

    def __init__(self) -> None:
        # The beginning of an escape sequence or character, which the next piece ends.
        self.held = b""
        # How many bytes of the string in which the last piece has ended were passed on; None outside of a string.
        self._passed: int | None = None

    def cut(self, piece: bytes) -> bytes:
        """Return what the parser needs of the next piece."""
        piece = self.held + piece
        whole = _end_of_whole(piece)
        piece, self.held = piece[:whole], piece[whole:]
        bare = piece.replace(b"\\\\", b"").replace(b'\\"', b"")
        quotes, before = bare.count(b'"'), self._passed
        kept = piece
        if before is not None and before > _LONGEST_STRING:
            kept = piece[_REST_OF_STRING.match(piece).end() :] if quotes else b""  # type: ignore[union-attr]  # it matches
        if quotes % 2 == (before is None):
            self._passed = len(bare) - bare.rfind(b'"') if quotes else (before or 0) + len(kept)
        else:
            self._passed = None
        return kept


def _end_of_whole(piece: bytes) -> int:
    """Return where the last escape sequence or character that the piece contains as a whole has ended."""
    escape = piece.rfind(b"\\", max(0, len(piece) - 5))
    if escape >= 0:
        backslashes = escape + 1 - len(piece[: escape + 1].rstrip(b"\\"))
        length = 6 if piece[escape + 1 : escape + 2] == b"u" else 2
        if backslashes % 2 and len(piece) - escape < length:
            return escape
    part = _PART_OF_CHARACTER.search(piece[-3:])
    return len(piece) - len(part[0]) if part else len(piece)


class _Builder:
    """What a parser sends its events to."""

    def __init__(self, shape: Shape) -> None:
        self.roots: list[Any] = []
        # The open containers, innermost last, each with the shape of its content.
        self._open: list[tuple[Any, Any]] = [(self.roots, Each(shape))]
        self._key = ""
        # How many containers are open in the part that is being ignored.
        self._left_out = 0

    def send(self, event: tuple[str, Any]) -> None:
        """Take one event of the parser: its type, and the value of a key or scalar."""
        what, value = event
        if self._left_out:
            self._left_out += (what in _OPENING) - (what in _CLOSING)
        elif what == "map_key":
            self._key = value
        elif what in _CLOSING:
            self._open.pop()
        elif what in _OPENING:
            self._begin(what)
        elif self._is_wanted(what, value):
            self._put(value)

    def _is_wanted(self, what: str, value: Any) -> bool:
        expected = self._expected()
        if what == "string":
            return expected is Text and len(value) <= LONGEST_TEXT
        return what == "number" and expected is Number and isinstance(value, int)

    def _begin(self, what: str) -> None:
        expected = self._expected()
        if what == "start_map" and isinstance(expected, Mapping):
            made: Any = {}
        elif what == "start_array" and isinstance(expected, Each):
            made = []
        else:
            self._left_out = 1
            return
        self._put(made)
        self._open.append((made, expected))

    def _expected(self) -> Shape | None:
        container, shape = self._open[-1]
        if isinstance(shape, Mapping):
            return shape.get(self._key)
        return None if shape.at_most is not None and len(container) >= shape.at_most else shape.shape

    def _put(self, value: Any) -> None:
        container, _ = self._open[-1]
        if isinstance(container, dict):
            container[self._key] = value
        else:
            container.append(value)


async def read(chunks: AsyncIterator[bytes], shape: Shape) -> Any:
    """Return the skeleton of one JSON text that comes in chunks. Raise UnexpectedAnswer if it is not JSON."""
    skeleton = Skeleton(shape)
    async for chunk in chunks:
        await _feed(skeleton, chunk)
    return skeleton.end()


async def skeleton_of(text: bytes, shape: Shape) -> Any:
    """Return the skeleton of one JSON text. Raise UnexpectedAnswer if it is not JSON."""
    skeleton = Skeleton(shape)
    await _feed(skeleton, text)
    return skeleton.end()


async def read_lines(chunks: AsyncIterator[bytes], shape: Shape) -> AsyncIterator[Any]:
    """Yield the skeleton of each line that is not empty. Raise UnexpectedAnswer if one is not JSON."""
    skeleton: Skeleton | None = None
    async for chunk in chunks:
        for number, part in enumerate(chunk.split(b"\n")):
            if number and skeleton is not None:
                yield skeleton.end()
                skeleton = None
            if part:
                skeleton = skeleton or Skeleton(shape)
                await _feed(skeleton, part)
    if skeleton is not None:
        yield skeleton.end()


async def _feed(skeleton: Skeleton, data: bytes) -> None:
    for start in range(0, len(data), PIECE_BYTES):
        skeleton.feed(data[start : start + PIECE_BYTES])
        await asyncio.sleep(0)
