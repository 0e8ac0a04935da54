"""Run the operator: `python -m workergroups_operator`."""

import asyncio
import faulthandler
import logging
import sys

import kopf

from workergroups_operator import handlers  # noqa: F401 (registers the handlers with kopf)
from workergroups_operator.timings import Timings

LIVENESS_ENDPOINT = "http://0.0.0.0:8080/healthz"
# For how long the process outlives its event loop, and the first of its tasks.
LAST_SECONDS = 9.0
EXTEND_SECONDS = 1.0


def main() -> None:
    """Serve all namespaces until stopped; exit with an error if anything but a signal stops it."""
    kopf.configure(verbose=False)
    for chatty in ("aiohttp.access", "kopf.objects"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    asyncio.run(serve())


async def serve() -> None:
    """Run kopf until a signal comes or a task ends: kopf's tasks are needed all or none."""
    stop = asyncio.Event()
    tasks = await kopf.spawn_tasks(
        standalone=True,
        clusterwide=True,
        liveness_endpoint=LIVENESS_ENDPOINT,
        stop_flag=stop,
        memo=kopf.Memo(stop=stop, timings=Timings()),
    )
    living = asyncio.create_task(_live(), name="life")
    for task in tasks:
        task.add_done_callback(lambda _: living.cancel())
    await kopf.run_tasks(tasks, ignored={living})
    if stop.is_set():
        sys.exit("a task of the operator's failed")


async def _live() -> None:
    """Put off the end of the process for as long as nothing ends.

    A thread of faulthandler's ends it, which needs neither the event loop nor Python's lock, and prints where each
    thread is. So neither an event loop that hangs nor kopf, which may wait for its own tasks for ever, keeps the
    process half alive.
    """
    while True:
        faulthandler.dump_traceback_later(LAST_SECONDS, exit=True)
        await asyncio.sleep(EXTEND_SECONDS)


if __name__ == "__main__":
    main()
