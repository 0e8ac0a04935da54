"""Apply entries to the custom resources' status, each when it changed, and each for itself."""

import asyncio
import logging
import time
from dataclasses import dataclass

from workergroups_agent.exchange import POLL_SECONDS, Exchange, Reports
from workergroups_agent.files import Stamp
from workergroups_agent.reporter.entries import SUBTREES, Entry, Identity, entries
from workergroups_agent.reporter.follow import describe, for_log
from workergroups_agent.reporter.known import Known
from workergroups_api.kube import Kube, is_refusal
from workergroups_api.plan import ClusterPlan

LOGGER = logging.getLogger(__name__)
# After a failure; doubled with each that follows.
FIRST_RETRY_SECONDS = 0.5
LAST_RETRY_SECONDS = 10.0
# Objects that are gone are asked for again, in case the answer was wrong.
GONE_SECONDS = 30.0
MAX_WRITES = 20


@dataclass(frozen=True)
class Retry:
    """An entry that could not be written, and when to try again."""

    entry: Entry
    at: float
    delay: float
    # The API server will say the same again until something else changes.
    is_refused: bool = False


def next_retry(entry: Entry, before: Retry | None, error: Exception, now: float) -> Retry:
    """When an entry is to be tried again that has just failed."""
    if is_gone(error):
        return Retry(entry, now + GONE_SECONDS, FIRST_RETRY_SECONDS, is_refused=True)
    delay = FIRST_RETRY_SECONDS if before is None else min(2 * before.delay, LAST_RETRY_SECONDS)
    return Retry(entry, now + delay, delay, is_refusal(error))


def is_gone(error: Exception) -> bool:
    """Whether the object is no longer there, or another one has its name."""
    status = getattr(error, "status", None)
    return status == 404 or (status == 409 and "uid" in describe(error).lower())


def covers(reports: Reports, session: str, plan: ClusterPlan) -> bool:
    """Whether the executor has said something of everything in this plan, in this Ray session."""
    said = {entry.uid for entry in reports.pools.values()} | {entry.uid for entry in reports.groups.values()}
    planned = {pool.uid for pool in plan.pools} | {group.uid for group in plan.groups}
    return reports.session == session and planned <= said


class StatusWriter:
    """Brings the entries to the API server. After its start each is applied once: what is there is not known."""

    def __init__(self, client: Kube, namespace: str, exchange: Exchange, known: Known) -> None:
        self._client = client
        self._namespace = namespace
        self._exchange = exchange
        self._known = known
        self._reports = Reports()
        self._read: tuple[Stamp | None, int] | None = None
        self._wanted: dict[Identity, Entry] = {}
        self._written: dict[Identity, Entry] = {}
        self._retries: dict[Identity, Retry] = {}
        self._in_flight: set[Identity] = set()
        self._slots = asyncio.Semaphore(MAX_WRITES)

    async def run(self) -> None:
        """Never returns."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                self._look()
                now = time.monotonic()
                for identity, entry in self._wanted.items():
                    if self._is_due(identity, entry, now):
                        self._in_flight.add(identity)
                        tasks.create_task(self._apply(identity, entry))
                await asyncio.sleep(POLL_SECONDS)

    def has_told(self, session: str) -> bool:
        """Whether all that the executor says of the present plan in this session is written, or cannot be."""
        self._look()
        plan = self._known.plan
        if plan is None or not covers(self._reports, session, plan):
            return False
        if any(group.name not in self._known.groups for group in plan.groups):
            return False
        return all(self._is_settled(identity, entry) for identity, entry in self._wanted.items())

    def _is_settled(self, identity: Identity, entry: Entry) -> bool:
        retry = self._retries.get(identity)
        return self._written.get(identity) == entry or (retry is not None and retry.entry == entry and retry.is_refused)

    def _look(self) -> None:
        """Bring what is wanted up to the reports and to what is known."""
        stamp = self._exchange.reports_stamp()
        if self._read == (stamp, self._known.version):
            return
        self._read = stamp, self._known.version
        try:
            # While there are none, the executor is not connected: what it said last stays.
            self._reports = self._exchange.read_reports() or self._reports
        except (OSError, ValueError) as error:
            LOGGER.warning("the reports cannot be read: %s", type(error).__name__)
        self._wanted = entries(self._reports, self._known)
        self._written = {identity: entry for identity, entry in self._written.items() if identity in self._wanted}
        self._retries = {identity: retry for identity, retry in self._retries.items() if identity in self._wanted}

    def _is_due(self, identity: Identity, entry: Entry, now: float) -> bool:
        if identity in self._in_flight or self._written.get(identity) == entry:
            return False
        retry = self._retries.get(identity)
        return retry is None or retry.entry != entry or retry.at <= now

    async def _apply(self, identity: Identity, entry: Entry) -> None:
        kind, name = identity
        # Until the answer is there, nobody knows what the API server has.
        self._written.pop(identity, None)
        manifest = {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            # With the UID the write fails if the name has gone to another object meanwhile.
            "metadata": {"name": name, "namespace": self._namespace, "uid": entry.uid},
            "status": {SUBTREES[kind]: dict(entry.report)},
        }
        try:
            async with self._slots:
                await self._client.apply(manifest, subresource="status")
        except Exception as error:
            LOGGER.warning("status of %s %s cannot be written: %s", kind.kind, name, for_log(error))
            before = self._retries.get(identity)
            self._retries[identity] = next_retry(entry, before, error, time.monotonic())
        else:
            self._written[identity] = entry
            self._retries.pop(identity, None)
        finally:
            self._in_flight.discard(identity)
