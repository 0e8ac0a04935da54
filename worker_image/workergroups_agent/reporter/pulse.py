"""Whether the observer is connected to Ray, judged by when its pulse was last seen to change."""

from workergroups_agent.exchange import Pulse
from workergroups_agent.reporter.timings import Timings


class PulseWatch:
    """Remembers when the pulse changed, by the caller's clock: clocks of two processes are never compared."""

    def __init__(self, timings: Timings) -> None:
        self._stale = timings.pulse_stale
        self._latest: Pulse | None = None
        self._looks = 0
        self._changed: float | None = None

    def session(self, pulse: Pulse | None, now: float, *, vouches: bool = True) -> str | None:
        """Return the Ray session that the observer is connected to; None if it is not.

        The first pulse may be an old one, so only a pulse that changes counts. A pulse that does not vouch for the
        reports that this process has read is ignored.
        """
        if pulse is not None and not vouches:
            pulse = self._latest
        if pulse != self._latest:
            self._changed = now if self._looks else None
            self._latest = pulse
        self._looks += 1
        if pulse is None or self._changed is None or now - self._changed > self._stale:
            return None
        return pulse.session
