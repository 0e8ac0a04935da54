"""Follow one object of the API server across deletions, restarts of the server and lost connections."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import aclosing

from workergroups_agent.reporter.known import Found, Unreadable
from workergroups_agent.reporter.timings import ReporterTimings
from workergroups_api.manifest import Kind
from workergroups_common.text import plain
from workergroups_kube import Kube, api_error_message

LOGGER = logging.getLogger(__name__)
MAX_MESSAGE = 300


async def follow(
    client: Kube, kind: Kind, namespace: str, name: str, tell: Callable[[Found], None], timings: ReporterTimings
) -> None:
    """Pass the object to `tell` now and after each change, None while it does not exist. Never returns.

    If the API server does not answer, the latest version stays valid; before the first one, `tell` gets an
    `Unreadable`.
    """
    failures = 0
    has_told = False
    while True:
        try:
            async with aclosing(client.follow(kind, namespace, name, timings.resync)) as versions:
                async for found in versions:
                    tell(found)
                    has_told = True
                    failures = 0
                    await asyncio.sleep(timings.watch_pause)
        except Exception as error:
            # An odd object can raise any error, which may quote its content: that must not be logged.
            LOGGER.warning("cannot follow %s %s: %s", kind.kind, name, for_log(error))
            if not has_told:
                tell(Unreadable(describe(error)))
        # A watch that ends without a version counts as a failure, too.
        failures += 1
        await asyncio.sleep(timings.watch_retry.after(failures))


def describe(error: Exception) -> str:
    """Return the kind of an error, with the API server's message if it is one of its errors."""
    status = getattr(error, "status", None)
    if isinstance(status, int):
        return plain(f"{status}: {api_error_message(error)}", MAX_MESSAGE)
    return type(error).__name__


def for_log(error: Exception) -> str:
    """Return the same, but without what the API server may quote of a user's object."""
    status = getattr(error, "status", None)
    if isinstance(status, int) and status not in (401, 403, 404, 409):
        return f"{status} {getattr(error, 'reason', '')}"
    return describe(error)
