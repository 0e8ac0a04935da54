"""The Lease: which Ray session the executor is connected to, renewed as long as the reporter lives."""

import asyncio
import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime

from workergroups_agent.alive import SignOfLife
from workergroups_agent.exchange import POLL_SECONDS, Exchange, Pulse
from workergroups_agent.reporter.follow import for_log
from workergroups_agent.reporter.pulse import PulseWatch
from workergroups_api.kube import Kube
from workergroups_api.manifest import LEASE, Manifest
from workergroups_api.names import agent_name

LOGGER = logging.getLogger(__name__)
RENEW_SECONDS = 2.5
DURATION_SECONDS = 10
RETRY_SECONDS = 0.5
# A beat that takes longer is given up: the next one says more.
REQUEST_SECONDS = 2.0


def lease_manifest(namespace: str, name: str, uid: str, holder: str | None, now: datetime) -> Manifest:
    """What the reporter owns of the Lease; with the UID it cannot make one that its owner has deleted."""
    spec = {
        "renewTime": now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "leaseDurationSeconds": DURATION_SECONDS,
    }
    return {
        "apiVersion": LEASE.api_version,
        "kind": LEASE.kind,
        "metadata": {"name": name, "namespace": namespace, "uid": uid},
        "spec": spec | ({"holderIdentity": holder} if holder else {}),
    }


class Beats:
    """When to write the Lease: at once when the holder changed, and else from time to time."""

    def __init__(self) -> None:
        self._written: tuple[str | None] | None = None
        self._next = 0.0

    def is_due(self, holder: str | None, now: float) -> bool:
        """Whether to write now. After a failure the holder's change waits for the next try, too."""
        return now >= self._next or (self._written is not None and self._written != (holder,))

    def succeeded(self, holder: str | None, now: float) -> None:
        """The Lease says this."""
        self._written = (holder,)
        self._next = now + RENEW_SECONDS

    def failed(self, now: float) -> None:
        """What the Lease says is not known."""
        self._written = None
        self._next = now + RETRY_SECONDS


class Holder:
    """Who holds the Lease: the session that the executor is connected to, once all is told that it says of it.

    The operator believes what the status says of the session that holds the Lease. An agent that comes back finds there
    what the one before it wrote, which may be no longer so.
    """

    def __init__(self, has_told: Callable[[str], bool]) -> None:
        self._has_told = has_told
        self._told: str | None = None

    def of(self, session: str | None) -> str | None:
        """The holder while the executor is connected to this session, or to none."""
        if session != self._told:
            self._told = session if session is not None and self._has_told(session) else None
        return self._told


class LeaseKeeper:
    """Writes the Lease that the operator has made; as long as there is none, asks for it."""

    def __init__(
        self,
        client: Kube,
        namespace: str,
        cluster: str,
        exchange: Exchange,
        has_told: Callable[[str], bool],
        alive: SignOfLife,
    ) -> None:
        self._client = client
        self._alive = alive
        self._namespace = namespace
        self._name = agent_name(cluster)
        self._exchange = exchange
        self._watch = PulseWatch()
        self._holder = Holder(has_told)
        self._beats = Beats()
        self._uid: str | None = None

    async def run(self) -> None:
        """Never returns."""
        while True:
            self._alive.prolong()
            holder = self._holder.of(self._watch.session(self._pulse(), time.monotonic()))
            if self._beats.is_due(holder, time.monotonic()):
                await self._beat(holder)
            await asyncio.sleep(POLL_SECONDS)

    def _pulse(self) -> Pulse | None:
        try:
            return self._exchange.read_pulse()
        except (OSError, ValueError) as error:
            LOGGER.warning("the pulse cannot be read: %s", type(error).__name__)
            return None

    async def _beat(self, holder: str | None) -> None:
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                written = await self._write(holder)
        except Exception as error:
            LOGGER.warning("Lease %s cannot be renewed: %s", self._name, for_log(error))
            if getattr(error, "status", None) in (404, 409, 422):
                self._uid = None  # it is gone, and another one may have its name
            written = False
        if written:
            self._beats.succeeded(holder, time.monotonic())
        else:
            self._beats.failed(time.monotonic())

    async def _write(self, holder: str | None) -> bool:
        if self._uid is None:
            found = await self._client.get(LEASE, self._namespace, self._name)
            if found is None:
                return False
            self._uid = str(found["metadata"]["uid"])
        await self._client.apply(lease_manifest(self._namespace, self._name, self._uid, holder, datetime.now(UTC)))
        return True
