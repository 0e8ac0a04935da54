"""Apply the executor's reports as the agent's subtrees of the custom resources' status, each when it changed."""

import asyncio
import logging
from typing import Any

from kubernetes.aio.dynamic.exceptions import ConflictError, DynamicApiError, NotFoundError

from workergroups_agent.exchange import POLL_SECONDS, Exchange
from workergroups_api.kube import RESOURCE_POOL, WORKER_GROUP, Kind, Kube, api_error_message

LOGGER = logging.getLogger(__name__)
RETRY_SECONDS = 1.0

SUBTREES = {RESOURCE_POOL: "reservation", WORKER_GROUP: "ranks"}


class StatusWriter:
    """Brings the reports to the API server."""

    def __init__(self, client: Kube, namespace: str, exchange: Exchange) -> None:
        self._client = client
        self._namespace = namespace
        self._exchange = exchange
        # (kind, name) -> the entry that the API server has.
        self._applied: dict[tuple[Kind, str], Any] = {}

    async def follow(self) -> None:
        """Never returns."""
        done = 0
        while True:
            stamp = self._exchange.reports_stamp()
            if stamp != done and await self._apply_all():
                done = stamp
            await asyncio.sleep(POLL_SECONDS if stamp == done else RETRY_SECONDS)

    async def _apply_all(self) -> bool:
        """Whether everything that is reported is now on the API server."""
        reports = self._exchange.read_reports()
        if reports is None:
            return True
        entries = {(RESOURCE_POOL, name): entry for name, entry in reports.pools.items()}
        entries |= {(WORKER_GROUP, name): entry for name, entry in reports.groups.items()}
        self._applied = {identity: entry for identity, entry in self._applied.items() if identity in entries}
        changed = [identity for identity, entry in entries.items() if self._applied.get(identity) != entry]
        results = await asyncio.gather(*(self._apply(identity, entries[identity]) for identity in changed))
        return all(results)

    async def _apply(self, identity: tuple[Kind, str], entry: dict[str, Any]) -> bool:
        kind, name = identity
        manifest = {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            # With the UID the write fails if the name has gone to another object meanwhile.
            "metadata": {"name": name, "namespace": self._namespace, "uid": entry["uid"]},
            "status": {SUBTREES[kind]: entry["report"]},
        }
        try:
            await self._client.apply(manifest, subresource="status")
        except (NotFoundError, ConflictError):
            LOGGER.info("%s %s is gone", kind.kind, name)
        except (DynamicApiError, OSError, TimeoutError) as error:
            why = api_error_message(error) if isinstance(error, DynamicApiError) else repr(error)
            LOGGER.warning("status of %s %s: %s", kind.kind, name, why)
            return False
        self._applied[identity] = entry
        return True
