"""Files that one process writes for another: replaced as a whole, and read within limits."""

import contextlib
import os
import stat
from pathlib import Path

# Changes with each write of a file; empty if the file cannot be examined.
Stamp = tuple[int, ...]


class UnreadableFile(ValueError):
    """The file cannot be read; the message is a sentence that says why."""


def write_file(path: Path, content: bytes) -> None:
    """Replace the file as a whole, in a directory into which only this process writes.

    Raises:
        OSError: There is no room, or something else has the file's name.
    """
    draft = path.with_suffix(".draft")
    try:
        path.parent.mkdir(exist_ok=True)
        draft.unlink(missing_ok=True)
        with draft.open("xb") as file:
            file.write(content)
        draft.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        raise


def read_file(path: Path, max_bytes: int) -> bytes | None:
    """Return the content of a regular file, None if it does not exist. Never blocks.

    Raises:
        UnreadableFile: It is a link, a directory, a pipe or the like, is too large, or may not be read.
    """
    try:
        with open(path, "rb", opener=_open_regular) as file:
            content = file.read(max_bytes + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UnreadableFile(f"{path.name} cannot be read: {error.strerror}") from None
    if len(content) > max_bytes:
        raise UnreadableFile(f"{path.name} cannot be read: it has more than {max_bytes} bytes")
    return content


def stamp(path: Path) -> Stamp | None:
    """Return a value that changes with each write of the file, None if it does not exist."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    except OSError:
        return ()
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _open_regular(path: str, flags: int) -> int:
    # Opening a pipe without a writer would block.
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(None, "it is not a regular file")
