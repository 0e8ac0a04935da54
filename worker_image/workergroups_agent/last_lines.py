"""What ranks printed last before they died: a file for each in the exchange, which the command line asks for.

`python -m workergroups_agent.last_lines UID` answers which there are of a group; with an incarnation and ranks behind
it, what each of these printed. The text is a user's, and nothing here looks into it.
"""

import json
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from workergroups.answering import give

DIRECTORY = "last-lines"
# The exchange has 256 MiB for plan and launches, too.
MAX_BYTES = 64 * 1024 * 1024
# Of each group: the one whose rank died last, and the one before.
MAX_INCARNATIONS = 2

_NAME = re.compile(r"(?P<uid>.+)_(?P<incarnation>\d{1,9})_(?P<rank>\d{1,9})\.lines", re.ASCII)

# A group's UID, an incarnation, and a rank.
Key = tuple[str, int, int]


@dataclass(frozen=True)
class DeadRank:
    """A rank that died, as the status tells of it; when, by the agent's clock."""

    uid: str
    incarnation: int
    rank: int
    reason: str
    message: str
    pod: str | None
    died: str

    @property
    def key(self) -> Key:
        """What tells it from all others."""
        return self.uid, self.incarnation, self.rank


def now() -> str:
    """The time, as it is written here."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


class LastLines:
    """The files: each has a line of JSON that says whose it is, and then the rank's own lines as they are."""

    def __init__(self, directory: Path, max_bytes: int = MAX_BYTES) -> None:
        self._directory = directory
        self._max_bytes = max_bytes
        self._since = directory / "since"

    @classmethod
    def from_environment(cls) -> "LastLines":
        """Those of the directory that the operator mounts into the agent's containers."""
        return cls(Path(os.environ["WORKERGROUPS_EXCHANGE"]) / DIRECTORY)

    def begin(self) -> None:
        """From now on somebody listens to what ranks print.

        Raises:
            OSError: There is no room.
        """
        self._directory.mkdir(exist_ok=True)
        for draft in self._directory.glob("*.draft"):
            draft.unlink()
        self._since.write_text(now(), encoding="ascii")

    def since(self) -> str | None:
        """When that was, in this life of the executor; None if nobody listens yet."""
        try:
            return self._since.read_text(encoding="ascii") or None
        except FileNotFoundError:
            return None

    def write(self, dead: DeadRank, text: bytes) -> None:
        """Keep a rank's lines.

        Raises:
            OSError: There is no room.
        """
        path = self._path(dead.key)
        draft = path.with_suffix(".draft")
        try:
            draft.write_bytes(json.dumps(asdict(dead)).encode("ascii") + b"\n" + text)
            draft.replace(path)
        except OSError:
            draft.unlink(missing_ok=True)
            raise

    def kept(self) -> set[Key]:
        """The ranks of which lines are kept."""
        return {key for key, _ in self._files()}

    def of_group(self, uid: str) -> list[DeadRank]:
        """The ranks of a group of which lines are kept, in the order of their incarnations."""
        found = (self.read(key) for key in sorted(self.kept()) if key[0] == uid)
        return [dead for dead, _ in filter(None, found)]

    def read(self, key: Key) -> tuple[DeadRank, bytes] | None:
        """Who it was, and its lines; None if they are not kept (any more)."""
        try:
            first, _, text = self._path(key).read_bytes().partition(b"\n")
            return DeadRank(**json.loads(first)), text
        except (FileNotFoundError, TypeError, ValueError, RecursionError):  # or it is no file of ours
            return None

    def remove(self, key: Key) -> None:
        """Fine if there is nothing."""
        self._path(key).unlink(missing_ok=True)

    def make_room(self) -> None:
        """Remove incarnations of long ago, and then the oldest files until the others are few enough."""
        files = sorted(self._files(), key=lambda file: file[1].stat().st_mtime_ns)
        incarnations: dict[str, set[int]] = {}
        for (uid, incarnation, _), _ in files:
            incarnations.setdefault(uid, set()).add(incarnation)
        outdated = {
            (uid, number) for uid, numbers in incarnations.items() for number in sorted(numbers)[:-MAX_INCARNATIONS]
        }
        size = sum(path.stat().st_size for _, path in files)
        for key, path in files:
            if key[:2] in outdated or size > self._max_bytes:
                size -= path.stat().st_size
                path.unlink()

    def _files(self) -> Iterator[tuple[Key, Path]]:
        for path in self._directory.glob("*.lines"):
            if match := _NAME.fullmatch(path.name):
                yield (match["uid"], int(match["incarnation"]), int(match["rank"])), path

    def _path(self, key: Key) -> Path:
        uid, incarnation, rank = key
        return self._directory / f"{uid}_{incarnation}_{rank}.lines"


def answer(uid: str, incarnation: str = "", *ranks: str) -> Any:
    """Return a group's dead ranks; or, of an incarnation, the text of each of these ranks, empty if it is not kept."""
    lines = LastLines.from_environment()
    if not incarnation:
        return {"since": lines.since(), "dead": [asdict(dead) for dead in lines.of_group(uid)]}
    found = (lines.read((uid, int(incarnation), int(rank))) for rank in ranks)
    return [kept[1].decode(errors="replace") if kept else "" for kept in found]


if __name__ == "__main__":
    give(answer, *sys.argv[1:])
