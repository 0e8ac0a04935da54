"""Run the reporter."""

import asyncio
import logging
import os
import signal

from workergroups_agent.exchange import Exchange
from workergroups_agent.reporter.orders import OrderKeeper
from workergroups_agent.reporter.status import StatusWriter
from workergroups_api.kube import Kube
from workergroups_api.names import AGENT_FIELD_MANAGER


async def report_forever() -> None:
    """Until kubelet ends it."""
    namespace = os.environ["WORKERGROUPS_NAMESPACE"]
    exchange = Exchange.from_environment()
    async with Kube.connect(AGENT_FIELD_MANAGER) as client, asyncio.TaskGroup() as tasks:
        keeper = OrderKeeper(client, namespace, os.environ["WORKERGROUPS_CLUSTER"], exchange)
        tasks.create_task(keeper.follow())
        tasks.create_task(StatusWriter(client, namespace, exchange).follow())


def main() -> None:
    """As a container's first process it must ask for the signal that ends it."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        asyncio.run(report_forever())
    except KeyboardInterrupt:
        logging.info("told to end")


if __name__ == "__main__":
    main()
