"""What the processes of a test's Ray find in their environment."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

_VARIABLES = {
    # A local cluster of Ray 2.60 otherwise turns token authentication on, and writes a token file.
    "RAY_AUTH_MODE": "disabled",
    # Otherwise Ray starts a process per CPU, of which these tests pretend to have many.
    "RAY_prestart_worker_first_driver": "0",
    # Otherwise Ray kills ranks when other programs fill the machine's memory.
    "RAY_memory_monitor_refresh_ms": "0",
}


@contextmanager
def rays_environment() -> Iterator[pytest.MonkeyPatch]:
    """Set the variables within the context, for other tests talk to other clusters."""
    with pytest.MonkeyPatch.context() as environment:
        for name, value in _VARIABLES.items():
            environment.setenv(name, value)
        yield environment
