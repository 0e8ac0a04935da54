"""Whether the observer is connected to Ray, judged by when its heartbeat was last seen to change."""

from workergroups_agent.exchange import ObserverHeartbeat
from workergroups_agent.reporter.timings import ReporterTimings


class HeartbeatWatch:
    """Remembers when the heartbeat changed, by the caller's clock: clocks of two processes are never compared."""

    def __init__(self, timings: ReporterTimings) -> None:
        self._stale = timings.heartbeat_stale
        self._latest: ObserverHeartbeat | None = None
        self._looks = 0
        self._changed: float | None = None

    def session(self, heartbeat: ObserverHeartbeat | None, now: float, *, vouches: bool = True) -> str | None:
        """Return the Ray session that the observer is connected to; None if it is not.

        The first heartbeat may be an old one, so only one that changes counts. One that does not vouch for the reports
        that this process has read is ignored.
        """
        if heartbeat is not None and not vouches:
            heartbeat = self._latest
        if heartbeat != self._latest:
            self._changed = now if self._looks else None
            self._latest = heartbeat
        self._looks += 1
        if heartbeat is None or self._changed is None or now - self._changed > self._stale:
            return None
        return heartbeat.session
