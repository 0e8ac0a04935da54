"""Follow one object of the API server, whatever happens to it, to the server or to the connection."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import aclosing

from workergroups_agent.reporter.known import Found, Unreadable
from workergroups_api.backoff import Backoff
from workergroups_api.kube import Kube, api_error_message
from workergroups_api.manifest import Kind
from workergroups_api.text import plain

LOGGER = logging.getLogger(__name__)
RESYNC_SECONDS = 30
# After a failure, and at most after several in a row.
FIRST_RETRY_SECONDS = 0.5
LAST_RETRY_SECONDS = 5.0
# Between two versions, so that a server that ends every watch at once is not asked without a pause.
PAUSE_SECONDS = 0.05
MAX_MESSAGE = 300


async def follow(client: Kube, kind: Kind, namespace: str, name: str, tell: Callable[[Found], None]) -> None:
    """Tell the object as it is now and after each change, None while it does not exist. Never returns.

    What was told stays true as far as anyone knows while the API server does not answer; only at first, an
    `Unreadable` is told.
    """
    failures = 0
    has_told = False
    while True:
        try:
            async with aclosing(client.follow(kind, namespace, name, RESYNC_SECONDS)) as versions:
                async for found in versions:
                    tell(found)
                    has_told = True
                    failures = 0
                    await asyncio.sleep(PAUSE_SECONDS)
        except Exception as error:
            # An object can be so odd that reading it raises anything; its content is not for the log.
            LOGGER.warning("%s %s cannot be followed: %s", kind.kind, name, for_log(error))
            if not has_told:
                tell(Unreadable(describe(error)))
        # A watch that ends without a version counts as a failure, too.
        failures += 1
        await asyncio.sleep(Backoff(FIRST_RETRY_SECONDS, LAST_RETRY_SECONDS).after(failures))


def describe(error: Exception) -> str:
    """The kind of an error, and the API server's sentence if it is its."""
    status = getattr(error, "status", None)
    if isinstance(status, int):
        return plain(f"{status}: {api_error_message(error)}", MAX_MESSAGE)
    return type(error).__name__


def for_log(error: Exception) -> str:
    """The same without what the API server may quote of a user's object."""
    status = getattr(error, "status", None)
    if isinstance(status, int) and status not in (401, 403, 404, 409):
        return f"{status} {getattr(error, 'reason', '')}"
    return describe(error)
