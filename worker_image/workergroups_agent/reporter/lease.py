"""The Lease: which Ray session the observer is connected to, and what the agent does not vouch for."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from workergroups_agent.exchange import POLL_SECONDS, Exchange, ObserverHeartbeat
from workergroups_agent.files import UnreadableFile
from workergroups_agent.liveness_file import LivenessFile
from workergroups_agent.reporter.follow import for_log
from workergroups_agent.reporter.status import StatusWriter
from workergroups_agent.reporter.timings import ReporterTimings
from workergroups_api.manifest import LEASE, Manifest
from workergroups_api.names import DOUBTS_ANNOTATION, agent_name
from workergroups_api.vouching import EVERY, to_annotation
from workergroups_kube import Kube

LOGGER = logging.getLogger(__name__)
# What the Lease tells its readers; the operator uses its own clock instead.
DURATION_SECONDS = 10


@dataclass(frozen=True)
class LeaseContent:
    """The content of the Lease: the agent's session, and by UID why it does not vouch for an object's status."""

    holder: str | None = None
    doubts: Mapping[str, str] = field(default_factory=dict)
    suspects: frozenset[str] = frozenset()
    """Objects with late statuses. The Lease does not have them: its renewal shows whether the API server answers."""

    @property
    def news(self) -> tuple[str | None, frozenset[str], frozenset[str]]:
        """The part for which the Lease is renewed at once when it changes."""
        return self.holder, frozenset(self.doubts), self.suspects


def lease_manifest(namespace: str, name: str, uid: str, content: LeaseContent, now: datetime) -> Manifest:
    """Return the fields of the Lease that the reporter owns; the UID keeps it from recreating a deleted Lease."""
    spec = {
        "renewTime": now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "leaseDurationSeconds": DURATION_SECONDS,
    }
    doubts = to_annotation(content.doubts)
    annotations = {"annotations": {DOUBTS_ANNOTATION: doubts}} if doubts else {}
    metadata = {"name": name, "namespace": namespace, "uid": uid, **annotations}
    return LEASE.manifest(metadata, spec=spec | ({"holderIdentity": content.holder} if content.holder else {}))


class Renewals:
    """Decides when to write the Lease: at once when there are news, and otherwise periodically."""

    def __init__(self, timings: ReporterTimings) -> None:
        self._timings = timings
        self._written: LeaseContent | None = None
        self._next = 0.0

    def is_due(self, content: LeaseContent, now: float) -> bool:
        """Return whether to write now. After a failure, news wait for the next try, too."""
        return now >= self._next or (self._written is not None and self._written.news != content.news)

    def succeeded(self, content: LeaseContent, now: float) -> None:
        """Note that the Lease holds this."""
        self._written = content
        self._next = now + self._timings.renew

    def failed(self, now: float) -> None:
        """Note that the content of the Lease is unknown."""
        self._written = None
        self._next = now + self._timings.renew_again


class HeartbeatWatch:
    """Whether the observer is connected to Ray, judged by when its heartbeat was last seen to change.

    This is by the caller's clock: clocks of two processes are never compared.
    """

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


class Holder:
    """The holder of the Lease: the session that the observer is connected to, once all its reports are written.

    The operator trusts statuses of the session that holds the Lease. An agent that returns finds statuses that its
    predecessor wrote, which may be outdated.
    """

    def __init__(self, has_told: Callable[[str, float], bool]) -> None:
        self._has_told = has_told
        self._told: str | None = None

    def of(self, session: str | None, now: float) -> str | None:
        """Return the holder while the observer is connected to this session, or to none."""
        if session != self._told:
            self._told = session if session is not None and self._has_told(session, now) else None
        return self._told


class LeaseKeeper:
    """Renews the Lease that the operator has created; until it exists, asks for it."""

    def __init__(
        self,
        client: Kube,
        namespace: str,
        cluster: str,
        exchange: Exchange,
        writer: StatusWriter,
        alive: LivenessFile,
        timings: ReporterTimings,
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._name = agent_name(cluster)
        self._exchange = exchange
        self._writer = writer
        self._alive = alive
        self._watch = HeartbeatWatch(timings)
        self._holder = Holder(writer.has_told)
        self._renewals = Renewals(timings)
        self._renew_request = timings.renew_request
        self._uid: str | None = None

    async def run(self) -> None:
        """Renew the Lease. Never returns."""
        while True:
            self._alive.prolong()
            content = self._content(time.monotonic())
            if self._renewals.is_due(content, time.monotonic()):
                await self._beat(content)
            await asyncio.sleep(POLL_SECONDS)

    def _content(self, now: float) -> LeaseContent:
        heartbeat, trouble = self._heartbeat()
        # Reports are written before the heartbeat that vouches for them.
        self._writer.look(now)
        trouble = trouble or self._writer.trouble
        vouches = heartbeat is not None and self._exchange.has_read_reports_of(heartbeat)
        session = self._watch.session(heartbeat, now, vouches=vouches)
        holder = self._holder.of(session, now)
        if holder is None and trouble:
            return LeaseContent(None, {EVERY: f"the agent's reporter cannot read what its observer reports: {trouble}"})
        return LeaseContent(holder, self._writer.doubts(now), self._writer.suspects(now))

    def _heartbeat(self) -> tuple[ObserverHeartbeat | None, str | None]:
        """Return the heartbeat, or why it cannot be read."""
        try:
            return self._exchange.read_heartbeat(), None
        except UnreadableFile as error:
            return None, str(error)

    async def _beat(self, content: LeaseContent) -> None:
        try:
            async with asyncio.timeout(self._renew_request):
                written = await self._write(content)
        except Exception as error:
            LOGGER.warning("cannot renew Lease %s: %s", self._name, for_log(error))
            if getattr(error, "status", None) in (404, 409, 422):
                self._uid = None  # it is gone, and another one may have its name
            written = False
        if written:
            self._renewals.succeeded(content, time.monotonic())
            self._writer.answered(time.monotonic())
        else:
            self._renewals.failed(time.monotonic())
            self._writer.unanswered()

    async def _write(self, content: LeaseContent) -> bool:
        if self._uid is None:
            found = await self._client.get(LEASE, self._namespace, self._name)
            if found is None:
                return False
            self._uid = str(found["metadata"]["uid"])
        await self._client.apply(lease_manifest(self._namespace, self._name, self._uid, content, datetime.now(UTC)))
        return True
