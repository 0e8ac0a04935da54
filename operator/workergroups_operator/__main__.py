"""Run the operator: `python -m workergroups_operator`."""

import asyncio
import faulthandler
import logging
import os
import signal
import socket
import sys
from contextlib import AsyncExitStack, suppress
from typing import Any

import kopf

from workergroups_api.names import OPERATOR_FIELD_MANAGER
from workergroups_kube import Kube
from workergroups_operator import handlers  # noqa: F401 (registers the handlers with kopf)
from workergroups_operator.leadership import Leadership, waiting
from workergroups_operator.metrics import Metrics
from workergroups_operator.settings import Settings, served_namespaces
from workergroups_operator.timings import Timings

LIVENESS_ENDPOINT = "http://0.0.0.0:8080/healthz"
LOG_FORMATS = {"text": kopf.LogFormat.FULL, "json": kopf.LogFormat.JSON}
# For how long the process outlives its event loop, or the first of its tasks that ends; how often it renews that.
LAST_SECONDS = 9.0
# For how long the pure steps of large clusters, which have threads, keep the event loop waiting each time.
SWITCH_SECONDS = 0.001
EXTEND_SECONDS = 1.0


def main() -> None:
    """Serve until stopped; exit with an error if anything but a signal stops it."""
    configure_log()
    sys.setswitchinterval(SWITCH_SECONDS)
    asyncio.run(serve())


def configure_log() -> None:
    """Log as LOG_FORMAT and LOG_LEVEL say; by default as text, from the level info on."""
    kopf.configure(log_format=LOG_FORMATS[os.environ.get("LOG_FORMAT", "text")])
    logging.getLogger().setLevel(os.environ.get("LOG_LEVEL", "info").upper())
    for chatty in ("aiohttp.access", "kopf.objects"):
        logging.getLogger(chatty).setLevel(logging.WARNING)


async def serve() -> None:
    """Run kopf until a signal comes or one of its tasks ends: none of them is of use without the others."""
    living = asyncio.create_task(_live(), name="life")
    settings, timings, metrics = Settings.from_environment(), Timings(), Metrics()
    if settings.metrics_port is not None:
        metrics.serve(settings.metrics_port)
    async with AsyncExitStack() as resources:
        leadership = await _lead(settings, timings, resources)
        if leadership is not None or settings.lease_namespace is None:
            await _run_kopf(living, settings=settings, timings=timings, metrics=metrics, leadership=leadership)


async def _lead(settings: Settings, timings: Timings, resources: AsyncExitStack) -> Leadership | None:
    """Wait until this process may serve. None if there is no other one, or if a signal comes first."""
    if settings.lease_namespace is None:
        return None
    client = await resources.enter_async_context(Kube.connect(OPERATOR_FIELD_MANAGER, timings.lead_write))
    leadership = Leadership(client, settings.lease_namespace, socket.gethostname(), timings)
    async with waiting(leadership, LIVENESS_ENDPOINT):
        begun = asyncio.ensure_future(leadership.begin())
        for each in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(each, begun.cancel)
        with suppress(asyncio.CancelledError):
            await begun
    return None if begun.cancelled() else leadership


async def _run_kopf(living: asyncio.Task[None], **memo: Any) -> None:
    stop = asyncio.get_running_loop().create_future()
    namespaces = served_namespaces()
    tasks = await kopf.spawn_tasks(
        standalone=True,
        clusterwide=not namespaces,
        namespaces=namespaces,
        liveness_endpoint=LIVENESS_ENDPOINT,
        stop_flag=stop,
        memo=kopf.Memo(stop=stop, **memo),
    )
    for task in tasks:
        task.add_done_callback(lambda _: living.cancel())
    await kopf.run_tasks(tasks, ignored={living})
    if not stop.cancelled():
        sys.exit("one of the operator's tasks failed")


async def _live() -> None:
    """Postpone the end of the process until cancelled.

    A thread of faulthandler ends the process and prints the stack of each thread. It needs neither the event loop nor
    Python's lock. So the process ends even if the event loop hangs, or if kopf waits for its own tasks for ever.
    """
    while True:
        faulthandler.dump_traceback_later(LAST_SECONDS, exit=True)
        await asyncio.sleep(EXTEND_SECONDS)


if __name__ == "__main__":
    main()
