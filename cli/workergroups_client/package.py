"""Pack a working directory as Ray unpacks it for a job: a zip file that is named after its content."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from pathspec import GitIgnoreSpec

from .errors import ClientError

MOST_BYTES = 100 << 20
"""The package passes through the API server, and the head of the Ray cluster keeps it in memory."""
_LARGEST_NAMED = 3
_EXCLUDED = (".git", ".venv", "venv", "__pycache__")
"""Ray excludes the same."""
_IGNORE_FILES = (".gitignore", ".rayignore")
_EPOCH = (1980, 1, 1, 0, 0, 0)


class Package(NamedTuple):
    """A package and its name."""

    name: str
    data: bytes

    @property
    def uri(self) -> str:
        """The URI of the package in a runtime environment."""
        return f"gcs://{self.name}"


def pack(directory: Path, excludes: Sequence[str] = ()) -> Package:
    """Pack the files below a directory, except for those that a pattern excludes.

    As in Ray, the patterns are the given ones and those in each directory's `.gitignore` and `.rayignore`. The same
    files give the same package, so that it is sent once.

    Raises:
        ClientError: The directory does not exist or has no files, or the files are too large.
    """
    if not directory.is_dir():
        raise ClientError(f"the working directory {directory} is not a directory")
    files = sorted(_files(directory, directory, [GitIgnoreSpec.from_lines([*_EXCLUDED, *excludes])], [directory]))
    if not files:
        raise ClientError(f"the working directory {directory} has no files to send: see what its ignore files exclude")
    _check_size(directory, files)
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            archive.writestr(_entry(directory, file), file.read_bytes())
    data = memory.getvalue()
    return Package(f"_ray_pkg_{hashlib.sha256(data).hexdigest()[:32]}.zip", data)


def _files(root: Path, directory: Path, specs: list[GitIgnoreSpec], bases: list[Path]) -> Iterator[Path]:
    """Yield the files below a directory that no pattern matches; each pattern is relative to its own base."""
    for name in _IGNORE_FILES:
        if (directory / name).is_file():
            specs = [*specs, GitIgnoreSpec.from_lines((directory / name).read_text().splitlines())]
            bases = [*bases, directory]
    for path in directory.iterdir():
        is_directory = path.is_dir()
        if any(_matches(spec, base, path, is_directory) for spec, base in zip(specs, bases, strict=True)):
            continue
        if not is_directory:
            yield from [path] if path.is_file() else []
        elif not path.is_symlink():  # a link may lead back to here
            yield from _files(root, path, specs, bases)


def _matches(spec: GitIgnoreSpec, base: Path, path: Path, is_directory: bool) -> bool:
    # A pattern that ends in a slash matches directories only.
    return spec.match_file(f"{path.relative_to(base).as_posix()}{'/' if is_directory else ''}")


def _check_size(directory: Path, files: list[Path]) -> None:
    sizes = {file: file.stat().st_size for file in files}
    if sum(sizes.values()) <= MOST_BYTES:
        return
    largest = sorted(files, key=lambda file: -sizes[file])[:_LARGEST_NAMED]
    named = ", ".join(f"{file.relative_to(directory)} ({sizes[file] >> 20} MiB)" for file in largest)
    raise ClientError(
        f"the working directory {directory} has {sum(sizes.values()) >> 20} MiB, and at most {MOST_BYTES >> 20} MiB "
        f"can be sent; the largest files: {named}. Exclude what the job does not need, in .gitignore, .rayignore or "
        f"the runtime environment's excludes, and put data on a volume of the pool"
    )


def _entry(directory: Path, file: Path) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(file.relative_to(directory).as_posix(), _EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = file.stat().st_mode << 16
    return entry
