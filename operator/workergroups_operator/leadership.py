"""Which process of the operator serves: the one that holds the Lease. The others wait until it is given back, or late.

A process that could not renew the Lease for a while writes nothing, since another one may serve by now. It goes on if
the API server was away for both, and ends if another process holds the Lease. Nobody compares two machines' clocks: a
Lease is late if a process has seen no change of it for as long as it lasts. Where admission delays writes of the Lease,
it lasts longer, so that the process that serves can renew it in time.
"""

import asyncio
import logging
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web
from kubernetes.aio.dynamic.exceptions import ConflictError

from workergroups_api.manifest import LEASE, Manifest
from workergroups_kube import API_ERRORS, Kube, api_error_message, is_refusal
from workergroups_operator.timings import Timings

LOGGER = logging.getLogger(__name__)
LEASE_NAME = "workergroups-operator"


class LostLeadership(Exception):
    """Another process holds the Lease."""


@dataclass(frozen=True)
class _Seen:
    """A Lease that this process has read, and when it first did."""

    version: str | None
    holder: str
    at: float
    # For how long its holder may serve from then on, in seconds.
    lasts: float = 0.0


class Leadership:
    """The Lease as one process sees it, which bears the name `identity`: that of its pod, also after a restart."""

    def __init__(
        self,
        client: Kube,
        namespace: str,
        identity: str,
        timings: Timings,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client, self._namespace, self._identity = client, namespace, identity
        self._timings, self._clock = timings, clock
        self._seen = _Seen(None, "", clock())
        # Until when no other process can take the Lease; None if this process does not hold it.
        self._sure_until: float | None = None
        # How many seconds the next write of the Lease is expected to take; 0 unless admission delays it.
        self._write_seconds = 0.0
        self._trouble = ""
        # Why the API server refuses what is asked of the Lease; None if it does not.
        self.refusal: str | None = None

    @property
    def is_sure(self) -> bool:
        """Whether no other process can serve."""
        return self._sure_until is not None and self._clock() < self._sure_until

    @property
    def _patience(self) -> float:
        """How many seconds a request may take, unless admission delays it."""
        return self._timings.lead_sure - self._timings.lead_renew

    async def begin(self) -> None:
        """Return once this process holds the Lease."""
        while True:
            if await self._tried(self._take):
                break
            await asyncio.sleep(self._timings.lead_look)
        LOGGER.info("this process serves from now on")

    async def keep(self) -> None:
        """Renew the Lease until cancelled. Raise LostLeadership if another process holds it."""
        while True:
            await asyncio.sleep(self._timings.lead_renew)
            await self._tried(self._renew)

    async def end(self) -> None:
        """Give the Lease back, if this process has it: nobody has to wait until it is late."""
        if self._sure_until is not None:
            self._sure_until = None
            await self._tried(self._give_back)

    async def _tried(self, step: Callable[[Manifest | None, float], Awaitable[bool]]) -> bool:
        """Take a step with the Lease as it is; return whether that worked. Log what is new."""
        now = self._clock()
        try:
            async with asyncio.timeout(self._patience):
                lease = await self._client.get(LEASE, self._namespace, LEASE_NAME)
            self._note(lease, now)
            done = await step(lease, now)
            trouble, self.refusal = "" if done else f"waiting: {self._seen.holder} serves", None
        except ConflictError:
            return False  # Somebody else was quicker.
        except API_ERRORS as error:
            done, trouble = False, f"Lease {LEASE_NAME}: {api_error_message(error)}"
            self.refusal = trouble if is_refusal(error) else None
        if trouble not in ("", self._trouble):
            LOGGER.info(trouble)
        self._trouble = trouble
        return done

    def _note(self, lease: Manifest | None, now: float) -> None:
        version = None if lease is None else str(lease["metadata"]["resourceVersion"])
        if version != self._seen.version:
            spec, timings = _spec(lease), self._timings
            lasts = min(float(spec.get("leaseDurationSeconds") or 0), timings.lead_lost + 2 * timings.lead_write)
            self._seen = _Seen(version, str(spec.get("holderIdentity") or ""), now, max(lasts, timings.lead_lost))

    async def _take(self, lease: Manifest | None, now: float) -> bool:
        """Take a Lease that nobody holds, or holds any more."""
        is_free = self._seen.holder in ("", self._identity)
        if not is_free and now - self._seen.at < self._seen.lasts:
            return False
        await self._write(lease, self._identity, now)
        return True

    async def _renew(self, lease: Manifest | None, now: float) -> bool:
        if self._seen.holder not in ("", self._identity):
            raise LostLeadership(f"{self._seen.holder} serves")
        await self._write(lease, self._identity, now)
        return True

    async def _give_back(self, lease: Manifest | None, now: float) -> bool:
        if lease is not None and self._seen.holder == self._identity:
            await self._write(lease, "", now)
        return True

    async def _write(self, lease: Manifest | None, holder: str, now: float) -> None:
        """Write the Lease, unless it has changed since it was read: then raise ConflictError."""
        before, timings = _spec(lease), self._timings
        # Until the end of the next write after this one.
        lasts = math.ceil(timings.lead_lost + 2 * self._write_seconds)
        sure_until = now + lasts - (timings.lead_lost - timings.lead_sure)
        is_same = before.get("holderIdentity", "") == holder
        is_transition = lease is not None and holder not in ("", before.get("holderIdentity"))
        moment = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        spec = {
            "holderIdentity": holder,
            "leaseDurationSeconds": lasts,
            "acquireTime": (is_same and before.get("acquireTime")) or moment,
            "renewTime": moment,
            "leaseTransitions": int(before.get("leaseTransitions") or 0) + is_transition,
        }
        metadata = {"namespace": self._namespace, "name": LEASE_NAME}
        if lease is not None:
            metadata["resourceVersion"] = lease["metadata"]["resourceVersion"]
        manifest = LEASE.manifest(metadata, spec=spec)
        if self._sure_until is not None:  # It may be written although no answer comes.
            self._sure_until = min(self._sure_until, sure_until)
        await self._timed((self._client.create if lease is None else self._client.apply)(manifest))
        self._sure_until = sure_until if holder else None

    async def _timed(self, write: Awaitable[None]) -> None:
        """Wait for a write, at first only for a moment; then the next one may take as long as admission may take."""
        began, longest = self._clock(), self._timings.lead_write
        try:
            async with asyncio.timeout(longest if self._write_seconds else self._patience):
                await write
        except TimeoutError:
            self._write_seconds = longest
            raise
        took = self._clock() - began
        self._write_seconds = took if took > self._patience / 2 else 0.0


def _spec(lease: Manifest | None) -> Manifest:
    return (lease or {}).get("spec") or {}


class FencedKube(Kube):
    """A connection that writes only while no other process can serve. Without a Lease, this process is the only one."""

    leadership: Leadership | None = None

    async def create(self, manifest: Manifest, *, dry_run: bool = False) -> None:
        """Create an object, as Kube does."""
        self._check()
        await super().create(manifest, dry_run=dry_run)

    async def delete(self, manifest: Manifest, *, only_unchanged: bool = False) -> None:
        """Delete an object, as Kube does."""
        self._check()
        await super().delete(manifest, only_unchanged=only_unchanged)

    async def _patch(self, *arguments: Any, **more: Any) -> None:
        self._check()
        await super()._patch(*arguments, **more)

    def _check(self) -> None:
        if self.leadership is not None and not self.leadership.is_sure:
            raise TimeoutError(f"Lease {LEASE_NAME} could not be renewed, so that another process may serve")


@asynccontextmanager
async def waiting(leadership: Leadership, endpoint: str) -> AsyncIterator[None]:
    """Answer probes of a process that waits, where kopf answers later: an error if it could never serve."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(text=leadership.refusal or "waiting", status=503 if leadership.refusal else 200)

    application, url = web.Application(), urlsplit(endpoint)
    application.router.add_get(url.path, answer)
    runner = web.AppRunner(application, access_log=None, handle_signals=False)
    await runner.setup()
    await web.TCPSite(runner, url.hostname, url.port).start()
    try:
        yield
    finally:
        await runner.cleanup()
