"""Run code under test as if it had its own process: it can be ended at any await, and none of it continues."""

import asyncio
import atexit
import contextlib
import logging
import sys
import threading
import warnings
from collections.abc import Callable, Coroutine
from typing import Any

LOGGER = logging.getLogger(__name__)
# Keep what was killed: collecting it would run its `finally` blocks, which a killed process never does.
_GRAVEYARD: list[object] = []


class Process:
    """A coroutine with its own thread and event loop."""

    def __init__(self, name: str, main: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self.name = name
        self._main = main
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(lambda _loop, _context: None)
        self._task: asyncio.Task[None] | None = None
        self._killed = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        # Why it ended, unless it was told to.
        self.failure: BaseException | None = None

    def start(self) -> "Process":
        """Start it, without waiting."""
        self._thread.start()
        return self

    @property
    def is_alive(self) -> bool:
        """Whether it runs."""
        return self._thread.is_alive()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._task = self._loop.create_task(self._main(), name=self.name)
        try:
            self._loop.run_until_complete(self._task)
        except asyncio.CancelledError:
            pass
        except BaseException as error:
            if not self._killed:
                self.failure = error
                LOGGER.error("%s ended: %r", self.name, error)
        finally:
            if not self._killed:
                self._clean_up()

    def _clean_up(self) -> None:
        """Clean up as asyncio.run does when its main coroutine has ended."""
        with contextlib.suppress(RuntimeError):
            remaining = asyncio.all_tasks(self._loop)
            for task in remaining:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*remaining, return_exceptions=True))
            self._loop.close()

    def kill(self) -> None:
        """End it where it is, as SIGKILL would. The proxy must cut its connections."""
        self._killed = True
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=10)
        assert not self._thread.is_alive(), f"{self.name} blocks its event loop"
        _bury(self._loop)

    async def stop(self, seconds: float = 10.0) -> None:
        """End it as SIGTERM would: cancel it, with time to clean up."""

        def cancel() -> None:
            if self._task is not None:
                self._task.cancel()

        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(cancel)
        await asyncio.to_thread(self._thread.join, seconds)
        if self._thread.is_alive():
            self.kill()


def _bury(loop: asyncio.AbstractEventLoop) -> None:
    if not _GRAVEYARD:
        atexit.register(_be_silent)
    _GRAVEYARD.append((loop, asyncio.all_tasks(loop)))


def _be_silent() -> None:
    """Silence the errors of what was killed, which the interpreter collects when it ends."""
    logging.disable()
    sys.unraisablehook = lambda _what: None
    warnings.simplefilter("ignore")
