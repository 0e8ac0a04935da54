"""Text from elsewhere, such as exceptions and messages of Kubernetes, in a form that fits into any status."""

import unicodedata

# Control characters, halves of surrogate pairs, and code points that are no characters.
_UNFIT = {"Cc", "Cs", "Cn"}
# Bidirectional controls also reverse the text around them, which may be ours.
_TURNING = set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_ELLIPSIS = " [...] "
# A multiple of the limit, since the spaces of indented texts, such as tracebacks, are dropped.
_LOOKED_AT = 8


def plain(text: str, limit: int) -> str:
    """Return the text on one line, at most `limit` characters of it, without anything that a writer of YAML refuses.

    What is too long loses its middle: beginning and end say most. However long it is, only these are looked at. A text
    that has been made plain stays as it is.
    """
    line = without_controls(" ".join(_shorter(text, _LOOKED_AT * limit).split()))
    return _shorter(line, limit)


def _shorter(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    end = (limit - len(_ELLIPSIS)) // 2
    return text[: limit - len(_ELLIPSIS) - end].rstrip() + _ELLIPSIS + text[-end:].lstrip()


def without_controls(text: str) -> str:
    """Return the text with control characters replaced, and so without control sequences of terminals.

    Spaces, tabs and ends of lines stay. A lone carriage return does not: what follows it would hide what is before it.
    """
    if text.isascii() and text.isprintable():
        return text
    text = text.replace("\r\n", "\n")
    unfit = {ord(each): "\N{REPLACEMENT CHARACTER}" for each in set(text) if _is_unfit(each)}
    return text.translate(unfit) if unfit else text


def _is_unfit(character: str) -> bool:
    return character in _TURNING or (unicodedata.category(character) in _UNFIT and character not in "\t\n")
