"""What the worker processes of this node have printed, dead ones included. Nothing of Ray is imported here."""

from __future__ import annotations

from pathlib import Path

SESSIONS = Path("/tmp/ray")
MAX_BYTES = 64 * 1024
"""What is read of the end of each log."""
_MARKS = (b":job_id:", b":actor_name:", b":task_name:")
"""Lines with which Ray marks whose output follows."""


def last_lines(worker_id: str) -> bytes | None:
    """Return the end of what a worker process printed, then of what it complained; ``None`` if its logs are gone.

    Raises:
        ValueError: This is no worker's id.
    """
    if not worker_id.isalnum():
        raise ValueError(f"{worker_id} is no worker's id")
    found = [log for end in ("out", "err") for log in SESSIONS.glob(f"session_[0-9]*/logs/worker-{worker_id}-*.{end}")]
    return b"".join(map(_end, found)) if found else None


def _end(log: Path) -> bytes:
    with log.open("rb") as file:
        begin = max(0, log.stat().st_size - MAX_BYTES)
        file.seek(begin)
        lines = file.read(MAX_BYTES).splitlines(keepends=True)[1 if begin else 0 :]
    return b"".join(line for line in lines if not line.startswith(_MARKS))
