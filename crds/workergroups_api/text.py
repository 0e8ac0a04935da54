"""Text that others made, such as exceptions and the words of Kubernetes, in a form that fits into any status."""

import unicodedata

# Control characters, halves of surrogate pairs, and code points that no text has.
_UNFIT = {"Cc", "Cs", "Cn"}
# They turn the direction of the text that follows, ours too.
_TURNING = set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_ELLIPSIS = " [...] "


def plain(text: str, limit: int) -> str:
    """The text on one line, at most `limit` characters of it, and nothing in it that a writer of YAML refuses.

    What is too long loses its middle: beginning and end say most.
    """
    fit = "".join("\N{REPLACEMENT CHARACTER}" if _is_unfit(c) else c for c in text)
    line = " ".join(fit.split())
    if len(line) <= limit:
        return line
    end = (limit - len(_ELLIPSIS)) // 2
    return line[: limit - len(_ELLIPSIS) - end] + _ELLIPSIS + line[-end:]


def _is_unfit(character: str) -> bool:
    return character in _TURNING or (unicodedata.category(character) in _UNFIT and not character.isspace())
