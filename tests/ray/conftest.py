"""What Ray's processes find in their environment when tests start them."""

from __future__ import annotations

import pytest


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
