"""When the operator judges agents, restarts watches and retries turns: one value, which `handlers` injects."""

from dataclasses import dataclass, field

from workergroups_api.backoff import Backoff


@dataclass(frozen=True)
class Timings:
    """Times in seconds. A connected agent renews its Lease every 2.5 seconds."""

    # A Lease that has not changed for this time is late. How often the operator looks for such Leases.
    lease_late: float = 6.0
    lease_check: float = 1.0
    # An agent whose Lease is still late after this time is silent.
    lease_confirm: float = 4.5
    # An agent that has lost Ray reports it within this time.
    session_stale: float = 4.0
    # After this time without a connected agent, the status of its objects becomes Unknown.
    agent_away: float = 3.0
    # No two lists of one kind, and no two watches of it, begin within this time.
    watch_retry: float = 2.0
    # A watch ends after this time. It counts as broken if it does not end soon after: a dead connection is silent, too.
    watch: float = 15.0
    watch_late: float = 3.0
    # Pauses between turns of a cluster that fail; urgent if statuses may be untrue meanwhile.
    retry: Backoff = field(default_factory=lambda: Backoff(0.5, 60.0))
    urgent_retry: Backoff = field(default_factory=lambda: Backoff(0.5, 2.0))
