"""The Ray that test files share, and what its processes find in their environment."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Any

import pytest


class Rays:
    """One Ray at a time, kept from file to file as long as they want the same: to start one takes long."""

    def __init__(self) -> None:
        self._name: str | None = None
        self._value: Any = None
        self._running = ExitStack()

    def use(self, name: str, run: Callable[[], AbstractContextManager[Any]]) -> Any:
        """What `run` gave when a Ray of this name was first wanted."""
        if name != self._name:
            self.stop()
            self._value = self._running.enter_context(run())
            self._name = name
        return self._value

    def stop(self) -> None:
        """None runs any more: a file has one of its own. Such files come before those that share one, or after them."""
        self._name, self._value = None, None
        self._running.close()


@pytest.fixture(scope="session")
def rays():
    rays = Rays()
    yield rays
    rays.stop()


@pytest.fixture(scope="module")
def ray_environment():
    """Set for one test file, and gone afterwards, for other tests talk to other clusters."""
    with pytest.MonkeyPatch.context() as environment:
        # A local cluster of Ray 2.60 otherwise turns token authentication on, and writes a token file.
        environment.setenv("RAY_AUTH_MODE", "disabled")
        # Otherwise Ray starts a process per CPU, of which these tests pretend to have many.
        environment.setenv("RAY_prestart_worker_first_driver", "0")
        # Otherwise Ray kills ranks when other programs fill the machine's memory.
        environment.setenv("RAY_memory_monitor_refresh_ms", "0")
        yield environment
