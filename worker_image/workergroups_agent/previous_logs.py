"""The last lines of ranks that died: a file for each in the exchange, for `workergroups logs --previous`.

The command line runs `python -m workergroups_agent.previous_logs UID` to list the dead ranks of a group. With an
incarnation and ranks as further arguments, it prints the last output of each of these ranks. The text is a user's, and
nothing here interprets it.
"""

import contextlib
import json
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from workergroups.answering import give
from workergroups_agent.files import UnreadableFile, read_file, write_file
from workergroups_api.report import DeadRank
from workergroups_api.vocabulary import REPORTS, Variable
from workergroups_common.bounded_json import Limits, parse

# The directory has 128 MiB, which the reports share.
MAX_BYTES = 64 * 1024 * 1024
# Incarnations of a group whose lines are kept: the latest, and the one before.
MAX_INCARNATIONS = 2
# The smallest file takes a page of memory.
_PAGE_BYTES = 4096
# The observer holds 64 KiB of what a rank printed.
_MAX_FILE_BYTES = 256 * 1024
_LIMITS = Limits(size=64 * 1024, depth=2, values=20)

_NAME = re.compile(r"(?P<uid>.+)_(?P<incarnation>\d{1,9})_(?P<rank>\d{1,9})\.lines", re.ASCII)

# A group's UID, an incarnation, and a rank.
Key = tuple[str, int, int]


@dataclass(frozen=True)
class _File:
    key: Key
    path: Path
    size: int
    written_ns: int


def now() -> datetime:
    """Return the time, to the second."""
    return datetime.now(timezone.utc).replace(microsecond=0)


class PreviousLogs:
    """The files: each begins with a line of JSON that describes the rank, followed by the rank's own lines."""

    def __init__(self, directory: Path, max_bytes: int = MAX_BYTES) -> None:
        self._directory = directory
        self._max_bytes = max_bytes
        self._since = directory / "since"

    @classmethod
    def from_environment(cls) -> "PreviousLogs":
        """Return the files in the directory that the operator mounts into the agent's containers."""
        return cls(Path(os.environ[Variable.EXCHANGE]) / REPORTS)

    def begin(self) -> None:
        """Record that the observer listens to ranks from now on.

        Raises:
            OSError: The directory is full.
        """
        for draft in self._directory.glob("*.draft"):
            draft.unlink()
        write_file(self._since, now().isoformat().encode("ascii"))

    def since(self) -> str | None:
        """Return since when this observer has listened to ranks; None if it does not yet.

        Raises:
            UnreadableFile: The file is not a regular file, or contains no time.
        """
        content = read_file(self._since, 100)
        if not content:
            return None
        try:
            return datetime.fromisoformat(content.decode("ascii")).isoformat()
        except ValueError:
            raise UnreadableFile(f"{self._since.name} cannot be read: it holds no time") from None

    def write(self, dead: DeadRank, text: bytes) -> None:
        """Keep a rank's lines.

        Raises:
            OSError: The directory is full.
        """
        write_file(self._path(dead.key), json.dumps(_fields(dead)).encode("ascii") + b"\n" + text)

    def kept(self) -> set[Key]:
        """Return the ranks whose lines are kept."""
        return {file.key for file in self._files()}

    def of_group(self, uid: str) -> list[DeadRank]:
        """Return the ranks of a group whose lines can be read, in the order of their incarnations."""
        dead = []
        for key in sorted(key for key in self.kept() if key[0] == uid):
            with contextlib.suppress(UnreadableFile):
                dead.append(self.read(key))
        return [found[0] for found in dead if found is not None]

    def read(self, key: Key) -> tuple[DeadRank, bytes] | None:
        """Return the dead rank and its lines; None if they are not, or no longer, kept.

        Raises:
            UnreadableFile: The file is not a regular file, or its content is wrong.
        """
        path = self._path(key)
        content = read_file(path, _MAX_FILE_BYTES)
        if content is None:
            return None
        first, _, text = content.partition(b"\n")
        try:
            return _dead_rank(key, parse(first, _LIMITS)), text
        except ValueError as error:
            raise UnreadableFile(f"{path.name} cannot be read: {error}") from None

    def remove(self, key: Key) -> None:
        """Remove a rank's lines, which may not exist."""
        self._path(key).unlink(missing_ok=True)

    def make_room(self) -> None:
        """Remove outdated incarnations, and then the oldest files until the others fit."""
        files = sorted(self._files(), key=lambda file: file.written_ns)
        incarnations: dict[str, set[int]] = {}
        for file in files:
            uid, incarnation, _ = file.key
            incarnations.setdefault(uid, set()).add(incarnation)
        outdated = {
            (uid, number) for uid, numbers in incarnations.items() for number in sorted(numbers)[:-MAX_INCARNATIONS]
        }
        size = sum(file.size for file in files)
        for file in files:
            if file.key[:2] in outdated or size > self._max_bytes:
                size -= file.size
                file.path.unlink(missing_ok=True)

    def _files(self) -> Iterator[_File]:
        for path in self._directory.glob("*.lines"):
            if not (match := _NAME.fullmatch(path.name)):
                continue
            # The file may be gone by now.
            with contextlib.suppress(OSError):
                found = path.lstat()
                key = match["uid"], int(match["incarnation"]), int(match["rank"])
                yield _File(key, path, max(found.st_size, _PAGE_BYTES), found.st_mtime_ns)

    def _path(self, key: Key) -> Path:
        uid, incarnation, rank = key
        return self._directory / f"{uid}_{incarnation}_{rank}.lines"


def _fields(dead: DeadRank) -> dict[str, Any]:
    """Return the rank as JSON, with the time as every Python can parse it."""
    return dead.model_dump() | {"died": dead.died.isoformat()}


def _dead_rank(key: Key, found: Any) -> DeadRank:
    """Return the rank that the file's name identifies, with the death that its content describes."""
    uid, incarnation, rank = key
    try:
        return DeadRank.model_validate({**found, "uid": uid, "incarnation": incarnation, "rank": rank})
    except (TypeError, ValidationError):
        raise ValueError("it does not describe how a rank died") from None


def answer(uid: str, incarnation: str = "", *ranks: str) -> Any:
    """Return a group's dead ranks; with an incarnation, the text of each of these ranks, empty if it is not kept."""
    lines = PreviousLogs.from_environment()
    if not incarnation:
        return {"since": lines.since(), "dead": [_fields(dead) for dead in lines.of_group(uid)]}
    return [_text_of(lines, (uid, int(incarnation), int(rank))) for rank in ranks]


def _text_of(lines: PreviousLogs, key: Key) -> str:
    try:
        found = lines.read(key)
    except UnreadableFile as error:
        return f"({error})"
    return found[1].decode(errors="replace") if found else ""


if __name__ == "__main__":
    give(answer, *sys.argv[1:])
