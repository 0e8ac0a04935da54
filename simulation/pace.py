"""Patience made shorter, so that a history of seconds shows what takes minutes otherwise. The code is the same."""

import importlib

# How much shorter: histories hold faults that are noticed by waiting.
PACE = 3.0
_SECONDS = {
    "workergroups_api.kube": ("REQUEST_TIMEOUT_SECONDS",),
    "workergroups_operator.heartbeats": ("LATE_SECONDS", "CONFIRM_SECONDS"),
    "workergroups_operator.handlers": ("HEARTBEAT_SECONDS", "STREAM_SECONDS", "LATE_SECONDS"),
    "workergroups_operator.watches": ("RETRY_SECONDS",),
    "workergroups_operator.work_queue": ("FIRST_RETRY_SECONDS", "LAST_RETRY_SECONDS", "LAST_URGENT_RETRY_SECONDS"),
    "workergroups_operator.policy.agent_liveness": ("STALE_SECONDS",),
    "workergroups_agent.reporter.lease": ("RENEW_SECONDS", "RETRY_SECONDS"),
    "workergroups_agent.reporter.pulse": ("STALE_SECONDS",),
    "workergroups_agent.reporter.writes": ("FIRST_RETRY_SECONDS", "LAST_RETRY_SECONDS"),
}


def quicken() -> None:
    """For the whole process, before anything runs."""
    for module_name, constants in _SECONDS.items():
        module = importlib.import_module(module_name)
        for name in constants:
            setattr(module, name, getattr(module, name) / PACE)
