"""The reporter's tasks, which run until they are cancelled."""

import asyncio
import logging

from workergroups_agent.exchange import Exchange
from workergroups_agent.liveness_file import LivenessFile
from workergroups_agent.reporter.known import Known
from workergroups_agent.reporter.lease import LeaseKeeper
from workergroups_agent.reporter.orders import OrderKeeper
from workergroups_agent.reporter.status import StatusWriter
from workergroups_agent.reporter.timings import ReporterTimings
from workergroups_kube import Kube

LOGGER = logging.getLogger(__name__)


async def serve(
    client: Kube, namespace: str, cluster: str, exchange: Exchange, alive: LivenessFile, timings: ReporterTimings
) -> None:
    """Report until cancelled.

    If a bug ends one task, all are restarted: the Lease must not vouch for statuses that are not written any more.
    """
    while True:
        try:
            await _serve(client, namespace, cluster, exchange, alive, timings)
        except Exception:
            LOGGER.exception("a task of the reporter has failed; restarting all of them")
        await asyncio.sleep(timings.restart)


async def _serve(
    client: Kube, namespace: str, cluster: str, exchange: Exchange, alive: LivenessFile, timings: ReporterTimings
) -> None:
    known = Known()
    writer = StatusWriter(client, namespace, exchange, known, timings)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(OrderKeeper(client, namespace, cluster, exchange, known, timings).run())
        tasks.create_task(writer.run())
        tasks.create_task(LeaseKeeper(client, namespace, cluster, exchange, writer, alive, timings).run())
