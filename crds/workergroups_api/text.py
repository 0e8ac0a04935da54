"""Text that others made, such as exceptions and the words of Kubernetes, in a form that fits into any status."""

import unicodedata

# Control characters, halves of surrogate pairs, and code points that no text has.
_UNFIT = {"Cc", "Cs", "Cn"}
_ELLIPSIS = " [...] "


def plain(text: str, limit: int) -> str:
    """The text on one line, at most `limit` characters of it, and nothing in it that a writer of YAML refuses.

    What is too long loses its middle: beginning and end say most.
    """
    fit = "".join(
        "\N{REPLACEMENT CHARACTER}" if unicodedata.category(c) in _UNFIT and not c.isspace() else c for c in text
    )
    line = " ".join(fit.split())
    if len(line) <= limit:
        return line
    end = (limit - len(_ELLIPSIS)) // 2
    return line[: limit - len(_ELLIPSIS) - end] + _ELLIPSIS + line[-end:]
