"""The reporter's tasks, which go on for as long as they are let."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from workergroups_agent.alive import SignOfLife
from workergroups_agent.exchange import Exchange
from workergroups_agent.reporter.known import Known
from workergroups_agent.reporter.lease import LeaseKeeper
from workergroups_agent.reporter.orders import OrderKeeper
from workergroups_agent.reporter.status import StatusWriter
from workergroups_api.kube import Kube

LOGGER = logging.getLogger(__name__)
RESTART_SECONDS = 1.0


async def serve(client: Kube, namespace: str, cluster: str, exchange: Exchange, alive: SignOfLife) -> None:
    """Report until cancelled."""

    writer: StatusWriter | None = None

    async def orders_and_status() -> None:
        # Both begin anew together, for the one rests on what the other knows.
        nonlocal writer
        known = Known()
        writer = StatusWriter(client, namespace, exchange, known)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(OrderKeeper(client, namespace, cluster, exchange, known).run())
            tasks.create_task(writer.run())

    def has_told(session: str) -> bool:
        return writer is not None and writer.has_told(session)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_again_and_again(orders_and_status))
        tasks.create_task(_again_and_again(LeaseKeeper(client, namespace, cluster, exchange, has_told, alive).run))


async def _again_and_again(run: Callable[[], Awaitable[None]]) -> None:
    """What ends by an error of ours begins anew, and leaves the others alone."""
    while True:
        try:
            await run()
        except Exception:
            LOGGER.exception("the reporter begins anew")
        await asyncio.sleep(RESTART_SECONDS)
