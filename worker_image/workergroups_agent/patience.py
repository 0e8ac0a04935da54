"""Tolerate failed polls of Ray, until they have failed for too long."""

import logging
import time

from workergroups.ray_private.gcs import SessionEnded

LOGGER = logging.getLogger(__name__)
# After a look that failed.
RETRY_SECONDS = 0.1


class Patience:
    """A context for each look at Ray: it logs and forgives a failed look, until looks have failed for too long.

    Users can write to the GCS, so a look may fail for any reason.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._answered = time.monotonic()
        self._told = ""

    def __enter__(self) -> None:
        """Begin a look."""

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> bool:
        """Forgive a failed look.

        Raises:
            SessionEnded: Looks have failed for too long.
        """
        if error is None:
            self._answered, self._told = time.monotonic(), ""
            return False
        if isinstance(error, SessionEnded) or not isinstance(error, Exception):
            return False
        if (name := type(error).__name__) != self._told:
            LOGGER.warning("a look at Ray failed: %s", name)
            self._told = name
        if time.monotonic() - self._answered > self._seconds:
            raise SessionEnded(f"looks at Ray have failed for {self._seconds:g} s: {name}") from None
        time.sleep(RETRY_SECONDS)
        return True
