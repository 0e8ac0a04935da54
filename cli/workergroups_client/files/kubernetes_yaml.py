"""Read YAML as kubectl does: what a plain scalar is differs from YAML 1.1, which PyYAML reads, and from 1.2."""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Iterator
from typing import Any

import yaml

_TAG = "tag:yaml.org,2002:"
_WORDS: dict[str, tuple[str, Any]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), ("null", None)),
    **{
        spelled: ("bool", value)
        for words, value in (("y yes true on", True), ("n no false off", False))
        for word in words.split()
        for spelled in (word, word.capitalize(), word.upper())
    },
    "<<": ("merge", None),
    **{f"{sign}{word}": ("float", None) for sign in ("", "+", "-") for word in (".inf", ".Inf", ".INF")},
    **dict.fromkeys((".nan", ".NaN", ".NAN"), ("float", None)),
}
# After its underscores are removed. A leading 0 means octal. kubectl also reads a sign after `0b`.
_INTEGER = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)|0b[-+][01]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
# Underscores may be anywhere but at the beginning; in what begins with the point, only between digits.
_ODD_UNDERSCORE = re.compile(r"_.*|\..*((?<![0-9])_|_(?![0-9])).*")
_BASES = {"x": 16, "b": 2, "o": 8}
# Larger integers are floats.
_LEAST, _MOST = -(2**63), 2**64 - 1


def documents(text: str) -> Iterator[Any]:
    """Yield the documents of a text, as JSON could hold them.

    Raises:
        yaml.YAMLError: The text is no YAML, or holds what JSON cannot: `.inf` and `.nan`.
    """
    yield from yaml.load_all(text, Loader=_Loader)


class _Loader(yaml.SafeLoader):
    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> str:
        if kind is yaml.ScalarNode and implicit[0]:
            return _TAG + _type_of(value)
        return str(super().resolve(kind, value, implicit))  # type: ignore[no-untyped-call]

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        # Before Python compares them, since 1 equals True.
        self.flatten_mapping(node)
        return {self._key(key): self.construct_object(value, deep=deep) for key, value in node.value}

    def _key(self, node: yaml.Node) -> str:
        """Return a key as JSON has it."""
        key = self.construct_object(node, deep=True)
        if isinstance(key, bool):
            return str(key).lower()
        if isinstance(key, str | int):
            return str(key)
        raise yaml.constructor.ConstructorError(None, None, f"the key {key} is no text: quote it", node.start_mark)

    def construct_word(self, node: yaml.ScalarNode) -> Any:
        if node.value not in _WORDS:
            raise yaml.constructor.ConstructorError(None, None, f"{node.value!r} is not {node.tag}", node.start_mark)
        return _WORDS[node.value][1]

    def construct_number(self, node: yaml.ScalarNode) -> int | float:
        try:
            found = _number(node.value)
        except ValueError as error:
            raise yaml.constructor.ConstructorError(None, None, str(error), node.start_mark) from error
        if not math.isfinite(found):
            raise yaml.constructor.ConstructorError(None, None, f"JSON has no {node.value}", node.start_mark)
        return found

    def construct_bytes(self, node: yaml.ScalarNode) -> str:
        try:
            return base64.b64decode(node.value).decode()
        except (binascii.Error, UnicodeDecodeError) as error:
            raise yaml.constructor.ConstructorError(None, None, str(error), node.start_mark) from error

    def construct_untagged(self, node: yaml.Node) -> Any:
        """Ignore a tag that JSON lacks."""
        if isinstance(node, yaml.MappingNode):
            return self.construct_mapping(node, deep=True)
        if isinstance(node, yaml.SequenceNode):
            return self.construct_sequence(node, deep=True)
        assert isinstance(node, yaml.ScalarNode)
        return self.construct_scalar(node)


for _name in ("null", "bool"):
    _Loader.add_constructor(_TAG + _name, _Loader.construct_word)
for _name in ("int", "float"):
    _Loader.add_constructor(_TAG + _name, _Loader.construct_number)
_Loader.add_constructor(f"{_TAG}binary", _Loader.construct_bytes)
for _tag in (None, *(_TAG + name for name in ("timestamp", "set", "omap", "pairs"))):
    _Loader.add_constructor(_tag, _Loader.construct_untagged)


def _type_of(plain: str) -> str:
    if plain in _WORDS:
        return _WORDS[plain][0]
    if _ODD_UNDERSCORE.fullmatch(plain):
        return "str"
    digits = plain.replace("_", "")
    if _INTEGER.fullmatch(digits):
        return "int"
    return "float" if _FLOAT.fullmatch(digits) and math.isfinite(float(digits)) else "str"


def _number(text: str) -> int | float:
    digits = text.replace("_", "").lower()
    if not _INTEGER.fullmatch(digits):
        return float(digits.replace(".inf", "inf").replace(".nan", "nan"))
    sign, digits = (-1 if digits[0] == "-" else 1), digits.lstrip("+-")
    base = _BASES.get(digits[1:2], 8 if digits[0] == "0" else 10)
    found = sign * int(digits[2:] if digits[1:2] in _BASES else digits, base)
    return found if _LEAST <= found <= _MOST else float(text.replace("_", ""))
