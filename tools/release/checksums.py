"""The digests by which a user sees that a file is the released one."""

import hashlib
from pathlib import Path

NAME = "SHA256SUMS"


def write(directory: Path) -> None:
    """Write a file for `sha256sum --check`."""
    files = sorted(path for path in directory.iterdir() if path.name != NAME)
    (directory / NAME).write_text("".join(f"{digest(file)}  {file.name}\n" for file in files))


def digest(path: Path) -> str:
    """Return the digest of a file as 64 hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
