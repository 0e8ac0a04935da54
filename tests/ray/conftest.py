"""The Ray that test files share, and what its processes find in their environment."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Any

import pytest

from tests.ray.environment import rays_environment


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
        """None runs any more: a file has one of its own. Such files are in a folder `alone`, which comes first."""
        self._name, self._value = None, None
        self._running.close()


@pytest.fixture(scope="session")
def rays():
    rays = Rays()
    yield rays
    rays.stop()


@pytest.fixture(scope="module")
def ray_environment():
    """Set for one test file."""
    with rays_environment() as environment:
        yield environment
