"""Pack a working directory as Ray unpacks it for a job: a zip file that is named after its content."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pathspec import PathSpec
from pathspec.patterns.gitignore.basic import GitIgnoreBasicPattern

from ..errors import ClientError

MOST_BYTES = 100 << 20
"""The package passes through the API server, and the head of the Ray cluster keeps it in memory."""
_LARGEST_NAMED = 3
_EXCLUDED = (".git", ".venv", "venv", "__pycache__")
"""Ray excludes the same."""
_IGNORE_FILES = (".gitignore", ".rayignore")
_OR_BELOW = "(?:/|$)"
"""The end of pathspec's expression for a pattern that also matches what is in a directory of that name."""
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
    """Pack the files below a directory, except for those that a pattern excludes; a .zip archive is sent as it is.

    As in Ray, the patterns are the given ones and those in each directory's `.gitignore` and `.rayignore`, links are
    followed, and empty directories stay. The same files give the same package, so that it is sent once.

    Raises:
        ClientError: The directory does not exist or has no files, the files are too large, or one cannot be read.
    """
    try:
        if zipfile.is_zipfile(directory):
            _check_size(directory.parent, [directory])
            return _named(directory.read_bytes())
        if not directory.is_dir():
            raise ClientError(f"the working directory {directory} is neither a directory nor a .zip archive")
        return _packed(directory, sorted(_files(directory, directory, [(directory, _spec([*_EXCLUDED, *excludes]))])))
    except OSError as error:
        raise ClientError(f"the working directory {directory} cannot be read: {error}") from error


def _packed(directory: Path, files: list[Path]) -> Package:
    if not files:
        raise ClientError(f"the working directory {directory} has no files to send: see what its ignore files exclude")
    _check_size(directory, files)
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            archive.writestr(_entry(directory, file), b"" if file.is_dir() else file.read_bytes())
    return _named(memory.getvalue())


def _named(data: bytes) -> Package:
    return Package(f"_ray_pkg_{hashlib.sha256(data).hexdigest()[:32]}.zip", data)


class _Pattern(GitIgnoreBasicPattern):
    """As in git and Ray, and other than in pathspec, `!name` brings back what has the name, and nothing below it."""

    @classmethod
    def pattern_to_regex(cls, pattern: Any) -> tuple[Any, bool | None]:
        regex, include = super().pattern_to_regex(pattern)
        is_back = include is False and regex is not None
        return f"{regex.removesuffix(_OR_BELOW)}$" if is_back and regex.endswith(_OR_BELOW) else regex, include


def _spec(lines: Sequence[str]) -> PathSpec[Any]:
    """Return the patterns with Ray's rules. Other than git's, they can bring back what is in an excluded directory."""
    return PathSpec.from_lines(_Pattern, lines)


def _files(root: Path, directory: Path, specs: list[tuple[Path, PathSpec[Any]]]) -> Iterator[Path]:
    """Yield the files and empty directories below a directory that no pattern matches.

    Each pattern is relative to its own directory.
    """
    for name in _IGNORE_FILES:
        if (directory / name).is_file():
            # Names of files that are not UTF-8 are decoded in the same way.
            lines = (directory / name).read_text(encoding="utf-8", errors="surrogateescape").splitlines()
            specs = [*specs, (directory, _spec(lines))]
    inside = list(directory.iterdir())
    if not inside and directory != root:
        yield directory
    for path in inside:
        if any(spec.match_file(path.relative_to(base).as_posix()) for base, spec in specs):
            continue
        if not path.is_dir():
            yield from [path] if path.is_file() else []
            continue
        if path.is_symlink() and directory.resolve().is_relative_to(path.resolve()):
            raise ClientError(f"{path} is a link to a directory that contains it: exclude it, or remove it")
        yield from _files(root, path, specs)


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
    name = file.relative_to(directory).as_posix()
    if any("\ud800" <= each <= "\udfff" for each in name):
        raise ClientError(f"the name of {str(file)!a} is not UTF-8: rename or exclude it")
    entry = zipfile.ZipInfo(f"{name}/" if file.is_dir() else name, _EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = file.stat().st_mode << 16
    return entry
