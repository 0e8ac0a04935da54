"""The Ray that test files share, and what its processes find in their environment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


class Rays:
    """One Ray at a time, kept from file to file as long as they want the same: to start one takes long."""

    def __init__(self) -> None:
        self._name: str | None = None
        self._value: Any = None
        self._stop: Callable[[], None] | None = None

    def use(self, name: str, start: Callable[[], tuple[Any, Callable[[], None]]]) -> Any:
        """What `start` returned with the way to stop it, when a Ray of this name was first wanted."""
        if name != self._name:
            self.stop()
            self._value, self._stop = start()
            self._name = name
        return self._value

    def stop(self) -> None:
        """None runs any more: a file has one of its own. Such files come before those that share one, or after them."""
        if self._stop is not None:
            self._stop()
        self._name, self._value, self._stop = None, None, None


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
