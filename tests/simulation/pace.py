"""Patience made shorter, so that a history of seconds shows what takes minutes otherwise. The code is the same."""

import importlib
from dataclasses import replace

from tests.simulation import operator
from workergroups_api.backoff import Backoff
from workergroups_operator.timings import Timings

# How much shorter: histories hold faults that are noticed by waiting.
PACE = 3.0
_SECONDS = {
    "workergroups_api.kube": ("REQUEST_TIMEOUT_SECONDS",),
    "workergroups_agent.reporter.lease": ("RENEW_SECONDS", "RETRY_SECONDS"),
    "workergroups_agent.reporter.pulse": ("STALE_SECONDS",),
    "workergroups_agent.reporter.writes": ("FIRST_RETRY_SECONDS", "LAST_RETRY_SECONDS"),
}


def quicken() -> None:
    """For the whole process, before anything runs."""
    operator.timings = quickened(operator.timings)
    for module_name, constants in _SECONDS.items():
        module = importlib.import_module(module_name)
        for name in constants:
            setattr(module, name, getattr(module, name) / PACE)


def quickened(usual: Timings) -> Timings:
    """Return the operator's timings at this pace."""
    return replace(
        usual,
        lease_late=usual.lease_late / PACE,
        lease_check=usual.lease_check / PACE,
        lease_confirm=usual.lease_confirm / PACE,
        session_stale=usual.session_stale / PACE,
        watch_retry=usual.watch_retry / PACE,
        watch=usual.watch / PACE,
        watch_late=usual.watch_late / PACE,
        retry=_quickened(usual.retry),
        urgent_retry=_quickened(usual.urgent_retry),
    )


def _quickened(usual: Backoff) -> Backoff:
    return replace(usual, first=usual.first / PACE, last=usual.last / PACE)
