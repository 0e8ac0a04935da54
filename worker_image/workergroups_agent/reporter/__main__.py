"""Run the reporter."""

import asyncio
import logging
import os
import signal

from workergroups_agent.exchange import Exchange
from workergroups_agent.liveness_file import LivenessFile
from workergroups_agent.reporter.serve import serve
from workergroups_agent.reporter.timings import ReporterTimings
from workergroups_api.names import AGENT_FIELD_MANAGER
from workergroups_api.vocabulary import Variable
from workergroups_kube import Kube


async def report_forever() -> None:
    """Report until the kubelet ends the container."""
    timings = ReporterTimings()
    async with Kube.connect(AGENT_FIELD_MANAGER, timings.request) as client:
        await serve(
            client,
            os.environ[Variable.NAMESPACE],
            os.environ[Variable.CLUSTER],
            Exchange.from_environment(),
            LivenessFile.from_environment(),
            timings,
        )


def main() -> None:
    """Run the reporter. As a container's first process it must install a handler for the signal that ends it."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        asyncio.run(report_forever())
    except KeyboardInterrupt:
        logging.info("told to end")


if __name__ == "__main__":
    main()
