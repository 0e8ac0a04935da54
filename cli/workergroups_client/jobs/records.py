"""Records of jobs, as Ray has them or as they were kept."""

from __future__ import annotations

from dataclasses import dataclass

RUNNING, FAILED, STOPPED = "RUNNING", "FAILED", "STOPPED"
LOST, UNKNOWN = "LOST", "UNKNOWN"
"""States that Ray does not have: the job ended with the node of its driver, or is unknown."""
_ENDED = {"SUCCEEDED", FAILED, STOPPED, LOST}
# The exit code of a shell for a program that SIGTERM ended, which is how Ray stops a job.
STOPPED_EXIT_CODE = 143


@dataclass(frozen=True)
class JobRecord:
    """Ray's record of a job, or what was kept of a job that Ray has forgotten."""

    id: str
    state: str
    """PENDING, RUNNING, SUCCEEDED, FAILED or STOPPED, as Ray has them.

    It is LOST if the job ended with the node of its driver, such as the head; UNKNOWN if it is unknown whether it runs.
    """
    entrypoint: str
    """The command as it was submitted."""
    message: str
    started: float | None
    """Seconds since the epoch."""
    ended: float | None
    driver_exit_code: int | None
    job: str = ""
    """The id that the attempts of a job have in common."""
    attempt: int = 1
    """1 for the first attempt, 2 for the first retry, and so on."""
    is_kept: bool = False
    """Whether Ray does not know the job, or cannot be asked, so that this is the record that was kept."""

    @property
    def has_ended(self) -> bool:
        """Whether the job has ended."""
        return self.state in _ENDED

    @property
    def exit_code(self) -> int | None:
        """The exit code of the driver; ``None`` while the job has not ended.

        It is 143 for a job that was stopped, and 1 for one that was lost or whose driver could not be started.
        """
        if not self.has_ended:
            return None
        if self.state == "SUCCEEDED":
            return 0
        if self.state == STOPPED:
            return STOPPED_EXIT_CODE
        code = self.driver_exit_code
        # Python gives the number of a signal as a negative code; a shell adds it to 128.
        return 1 if not code else 128 - code if code < 0 else code
