"""Apply subtrees to the custom resources' statuses, each on its own and only when it has changed."""

import asyncio
import logging
import time

from workergroups_agent.exchange import POLL_SECONDS, Exchange, Reports
from workergroups_agent.files import Stamp, UnreadableFile
from workergroups_agent.reporter.follow import for_log
from workergroups_agent.reporter.known import Known
from workergroups_agent.reporter.reach import Reach
from workergroups_agent.reporter.subtrees import StatusSubtree, count_unplanned, subtrees, unreported
from workergroups_agent.reporter.timings import ReporterTimings
from workergroups_agent.reporter.writes import Write
from workergroups_api.report import AGENT_FIELDS
from workergroups_api.vouching import MAX_OBJECTS
from workergroups_kube import Kube

LOGGER = logging.getLogger(__name__)
MAX_WRITES = 20


class StatusWriter:
    """Writes the subtrees to the API server. After a start it applies each once, since it does not know what exists."""

    def __init__(
        self, client: Kube, namespace: str, exchange: Exchange, known: Known, timings: ReporterTimings
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._exchange = exchange
        self._known = known
        self._timings = timings
        self._reports = Reports()
        self._stamp: Stamp | None = None
        self._version: int | None = None
        # Why the reports cannot be read, if they cannot, and when to try again.
        self.trouble: str | None = None
        self._read_again_at = 0.0
        # By UID, like everything that follows.
        self._writes: dict[str, Write] = {}
        # Why the reports do not cover an object, and since when.
        self._unreported: dict[str, tuple[str, float]] = {}
        self._unplanned = 0
        self._reach = Reach()
        self._slots = asyncio.Semaphore(MAX_WRITES)

    async def run(self) -> None:
        """Write statuses. Never returns."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                now = time.monotonic()
                self.look(now)
                for write in self._writes.values():
                    if write.is_due(now):
                        tasks.create_task(self._apply(write, write.begin()))
                await asyncio.sleep(POLL_SECONDS)

    def look(self, now: float) -> None:
        """Update the wanted subtrees from the reports and from what is known."""
        has_read = self._read(now)
        if not has_read and self._version == self._known.version:
            return
        self._version = self._known.version
        wanted = subtrees(self._reports, self._known)
        self._writes = {
            uid: self._writes.get(uid) or Write(subtree, now, self._timings) for uid, subtree in wanted.items()
        }
        for uid, subtree in wanted.items():
            self._writes[uid].want(subtree, now)
        missing = unreported(self._reports, self._known)
        since = {uid: since for uid, (_, since) in self._unreported.items()}
        self._unreported = {uid: (why, since.get(uid, now)) for uid, why in missing.items()}
        self._log_unplanned()

    def has_told(self, session: str, now: float) -> bool:
        """Return whether the statuses hold everything that is reported in this session, except for objects in doubt."""
        if self._known.plan is None or self._reports.session != session:
            return False
        untold = {uid for uid, write in self._writes.items() if not write.is_settled} | self._unreported.keys()
        return untold <= self._all_doubts(now).keys()

    def doubts(self, now: float) -> dict[str, str]:
        """Return why the agent cannot vouch for an object's status, by UID."""
        doubts = self._all_doubts(now)
        if len(doubts) <= MAX_OBJECTS:
            return doubts
        # Deleted objects must not crowd out the others: they will soon leave the plan.
        return {uid: why for uid, why in doubts.items() if uid not in self._writes or not self._writes[uid].is_gone}

    def suspects(self, now: float) -> frozenset[str]:
        """Return whose status is late, by UID. They are in doubt as soon as the API server is known to answer."""
        return frozenset(uid for uid, write in self._writes.items() if write.is_late(now))

    def answered(self, now: float) -> None:
        """Note that the API server answers. If it did not before, write at once what has failed."""
        if not self._reach.is_known:
            for write in self._writes.values():
                write.retry(now)
        self._reach.answered(now)

    def unanswered(self) -> None:
        """Note that the API server did not answer."""
        self._reach.failed()

    def _all_doubts(self, now: float) -> dict[str, str]:
        limit = self._timings.unreported
        late = {uid: why for uid, (why, since) in self._unreported.items() if now - since > limit}
        behind = {uid: why for uid, write in self._writes.items() if (why := write.doubt(self._reach)) is not None}
        return late | behind

    def _read(self, now: float) -> bool:
        """Read the reports if they may have changed; return whether they were read."""
        stamp = self._exchange.reports_stamp()
        if stamp == self._stamp and (self.trouble is None or now < self._read_again_at):
            return False
        self._stamp, before = stamp, self.trouble
        try:
            # Without reports, the observer is not connected, and its latest reports stay valid.
            self._reports = self._exchange.read_reports() or self._reports
            self.trouble = None
        except UnreadableFile as error:
            self.trouble, self._read_again_at = str(error), now + self._timings.read_again
        if self.trouble not in (None, before):
            LOGGER.warning("cannot read the reports: %s", self.trouble)
        return self.trouble is None

    def _log_unplanned(self) -> None:
        count = count_unplanned(self._reports, self._known)
        if count > self._unplanned:
            LOGGER.info("%d reports are about objects that are not planned, and are ignored", count)
        self._unplanned = count

    async def _apply(self, write: Write, subtree: StatusSubtree) -> None:
        try:
            await self._patch(subtree)
        except Exception as error:
            LOGGER.warning("cannot write the status of %s %s: %s", subtree.kind.kind, subtree.name, for_log(error))
            write.fail(error, time.monotonic())
        else:
            write.succeed(subtree)

    async def _patch(self, subtree: StatusSubtree) -> None:
        metadata = {"name": subtree.name, "namespace": self._namespace, "uid": subtree.uid}
        manifest = subtree.kind.manifest(metadata, status={AGENT_FIELDS[subtree.kind]: dict(subtree.report)})
        async with self._slots:
            patching = asyncio.ensure_future(self._client.apply_status(manifest))
            try:
                await asyncio.wait((patching,), timeout=self._timings.status_slot)
            except asyncio.CancelledError:
                patching.cancel()
                raise
        await patching
