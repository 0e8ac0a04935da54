"""Keep the state of Ray's control service (the GCS) on a volume, so that a head that starts again has it.

With the state, the next head continues the Ray session: nodes stay, and all ranks with them. The state is dropped, and
another session begins, if another Ray or another cluster wrote it, or if heads fail to start with it: it may be
damaged, or its volume full. The GCS locks its state, so two heads never share it, and none drops what another one uses.
"""

from __future__ import annotations

import errno
import fcntl
import json
import shutil
import time
from pathlib import Path

from workergroups_agent.files import write_file

MAX_STARTS = 3
"""As often, heads try to start with the same state. One that is killed meanwhile has tried, too."""
LEAVING_SECONDS = 30.0
POLL_SECONDS = 0.1
OPTION = "--system-config"


class GcsStorage:
    """The state of a cluster's GCS.

    Args:
        directory: The cluster's own directory on the volume; it need not exist.
        owner: Says which Ray and which cluster can use the state.
    """

    def __init__(self, directory: Path, owner: str) -> None:
        self._state = directory / "state"
        self._notes = directory / "heads.json"
        self._owner = owner

    def prepare(self) -> None:
        """Count a start, and drop a state that this head cannot use.

        Raises:
            OSError: The volume cannot be used, or another head uses it.
        """
        self._wait_for_another_head()
        starts = self._starts()
        if self._state.exists() and starts in (None, MAX_STARTS):
            why = (
                "another cluster or another Ray wrote it" if starts is None else f"{starts} heads did not start with it"
            )
            print(f"the state of the last Ray session is dropped: {why}", flush=True)
            shutil.rmtree(self._state)
            starts = 0
        self._state.mkdir(parents=True, exist_ok=True)
        self._note((starts or 0) + 1)

    def keep(self) -> None:
        """Note that a head has started with the state."""
        self._note(0)

    @property
    def option(self) -> str:
        """The option of `ray start --head` with which the GCS uses the state.

        No variables: drivers in the head would inherit them, and a Ray that they start would use the state, too.
        """
        return f"{OPTION}={json.dumps({'gcs_storage': 'rocksdb', 'gcs_storage_path': str(self._state)})}"

    def _note(self, starts: int) -> None:
        note = json.dumps({"owner": self._owner, "starts": starts}).encode()
        try:
            write_file(self._notes, note)
        except OSError as error:
            # A volume that is full has no space for another file, but for as many bytes in this one.
            if error.errno != errno.ENOSPC or self._starts() is None:
                raise
            with self._notes.open("r+b") as file:
                file.write(note)

    def _wait_for_another_head(self) -> None:
        """Wait until no GCS runs with the state: a pod that is deleted ends some seconds after the next one starts.

        Raises:
            OSError: Another one does not end, such as that of a head whose node is cut off.
        """
        deadline = time.monotonic() + LEAVING_SECONDS
        while self._is_locked():
            if time.monotonic() > deadline:
                raise OSError("another head uses it, which must end first")
            time.sleep(POLL_SECONDS)

    def _is_locked(self) -> bool:
        for lock in self._state.glob("*/LOCK"):
            with lock.open("r+") as file:
                try:
                    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except (BlockingIOError, PermissionError):
                    return True
                except OSError:
                    return False  # This file system has no locks.
        return False

    def _starts(self) -> int | None:
        """Return how many heads have tried to start with the state; None if it is not known to be this owner's."""
        try:
            noted = json.loads(self._notes.read_text())
            return min(int(noted["starts"]), MAX_STARTS) if noted["owner"] == self._owner else None
        except (OSError, ValueError, TypeError, KeyError):
            return None
