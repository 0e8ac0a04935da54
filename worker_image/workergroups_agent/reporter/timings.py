"""When the reporter renews the Lease, gives up what it waits for, and tries again: one value, which `serve` gets."""

from dataclasses import dataclass, field

from workergroups_common.backoff import Backoff


@dataclass(frozen=True)
class ReporterTimings:
    """Times in seconds. The operator's `timings.py` has the other half: when it judges the agent by its Lease."""

    # A request to the API server fails after this time.
    request: float = 15.0
    # Pauses between renewals of the Lease, after a success and after a failure.
    renew: float = 2.5
    renew_again: float = 0.5
    # A renewal that takes longer is given up: the next one has newer content.
    renew_request: float = 2.0
    # An observer whose heartbeat has not changed for this time is not connected to Ray.
    heartbeat_stale: float = 3.0
    # The agent no longer vouches for a status that has been behind the reports for this time.
    status_grace: float = 2.0
    # Pauses between tries of a status that the API server rejects.
    status_retry: Backoff = field(default_factory=lambda: Backoff(0.5, 30.0))
    # A status write that takes longer no longer occupies a slot.
    status_slot: float = 1.0
    # The reports may lack an object of the plan for this time.
    unreported: float = 5.0
    # Unreadable reports that have not changed are read again after this time.
    read_again: float = 1.0
    # An order that could not be written is retried after this time.
    orders_again: float = 1.0
    # An object that the reporter follows is read again after this time, so that a silent watch costs no more than that.
    resync: int = 30
    # Pauses between tries of a watch that fails, and after each version: a server may end every watch at once.
    watch_retry: Backoff = field(default_factory=lambda: Backoff(0.5, 5.0))
    watch_pause: float = 0.05
    # After a task of the reporter has failed, all are restarted after this time.
    restart: float = 1.0
