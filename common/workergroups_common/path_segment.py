"""Names become single segments of a URL's path, or no request is sent."""

import re

from workergroups_common.text import plain

_SEGMENT = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._:-]{0,252}")


class InvalidName(ValueError):
    """The name of an object is not valid."""


def path_segment(name: str) -> str:
    """Return the name if it is one segment of a path.

    Raises:
        InvalidName: It is not, and no object has such a name.
    """
    if not _SEGMENT.fullmatch(name):
        raise InvalidName(f"{plain(ascii(name), 100)} is not a valid object name")
    return name
