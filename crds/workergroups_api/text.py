"""Text that others made, such as exceptions and the words of Kubernetes, in a form that fits into any status."""

import unicodedata

# Control characters, halves of surrogate pairs, and code points that no text has.
_UNFIT = {"Cc", "Cs", "Cn"}
# They turn the direction of the text that follows, ours too.
_TURNING = set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_ELLIPSIS = " [...] "
# Times the limit: spaces of an indented text, such as a traceback, are dropped.
_LOOKED_AT = 8


def plain(text: str, limit: int) -> str:
    """The text on one line, at most `limit` characters of it, and nothing in it that a writer of YAML refuses.

    What is too long loses its middle: beginning and end say most. However long it is, only these are looked at.
    """
    line = " ".join(_fit(_shorter(text, _LOOKED_AT * limit)).split())
    return _shorter(line, limit)


def _shorter(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    end = (limit - len(_ELLIPSIS)) // 2
    return text[: limit - len(_ELLIPSIS) - end] + _ELLIPSIS + text[-end:]


def _fit(text: str) -> str:
    """The same number of characters, each of them fit."""
    unfit = {ord(each): "\N{REPLACEMENT CHARACTER}" for each in set(text) if _is_unfit(each)}
    return text.translate(unfit) if unfit else text


def _is_unfit(character: str) -> bool:
    return character in _TURNING or (unicodedata.category(character) in _UNFIT and not character.isspace())
