"""When the operator judges agents, restarts watches, and reconciles and retries: one value."""

from dataclasses import dataclass, field

from workergroups_common.backoff import Backoff


@dataclass(frozen=True)
class Timings:
    """Times in seconds. A connected agent renews its Lease every 2.5 seconds."""

    # A Lease that has not changed for this time is late. How often the operator looks for such Leases.
    lease_late: float = 6.0
    lease_check: float = 1.0
    # How often an operator that may not watch definitions looks whether KubeRay was installed.
    kuberay_check: float = 10.0
    # An agent whose Lease is still late after this time is silent.
    lease_confirm: float = 4.5
    # An agent that has lost Ray reports it within this time.
    session_stale: float = 4.0
    # After this time without a connected agent, the status of its objects becomes Unknown.
    agent_away: float = 3.0
    # No two lists of one kind, and no two watches of it, begin within this time.
    watch_retry: float = 2.0
    # A watch ends after this time. It counts as broken if it does not end soon after: a dead connection is silent, too.
    watch: float = 10.0
    watch_late: float = 3.0
    # If nothing at all happens with a kind for this time, not even a refusal, then kopf no longer watches it.
    unwatched: float = 60.0
    # The process that serves renews the operator's Lease this often; the others look at it this often. After the third
    # time without a renewal, it writes nothing, and after the fourth without a change, another process serves. While
    # admission delays writes of the Lease, for `lead_write` at most, all of this takes longer.
    lead_renew: float = 1.5
    lead_look: float = 1.0
    lead_sure: float = 4.0
    lead_lost: float = 6.0
    lead_write: float = 31.0
    # A request of the operator to the API server fails after this time.
    request: float = 15.0
    # After a reconcile of a cluster: what it wrote returns as several events within this time, which start one
    # reconcile.
    settle: float = 0.1
    # Reconciles of clusters whose namespace is being deleted are this far apart: they can change nothing any more.
    ending: float = 5.0
    # A cluster whose events never end gets a reconcile in this time, after a first burst.
    turn_again: float = 1.0
    # Without any event, a cluster gets a reconcile after this time, or up to a third earlier, so that many spread out.
    resync: float = 450.0
    # A reconcile that takes longer hangs. Each of its requests has its own deadline, which is much shorter.
    reconcile: float = 120.0
    # Pauses between reconciles of a cluster that fail; urgent if statuses may be untrue meanwhile.
    retry: Backoff = field(default_factory=lambda: Backoff(0.5, 60.0))
    urgent_retry: Backoff = field(default_factory=lambda: Backoff(0.5, 2.0))
    # If reconciles of a cluster fail for these times, although all of its pools and groups can be read or only some,
    # their statuses become Unknown.
    unread: float = 2.0
    partly_unread: float = 8.0
    # Pauses between looks at what no event reports: whether missing pods are accepted, and whether an obstacle, which
    # may lack our label, is gone.
    look_again: Backoff = field(default_factory=lambda: Backoff(2.0, 60.0, part=0.25))
    # No event reports a change of a Secret or ConfigMap from which a group takes variables: looks at them are this far
    # apart. While a group lacks one, they are as frequent as for an obstacle.
    sources: float = 60.0
    # A reconcile waits for its writes for this time. A few writes take a tenth of it, unless admission is slow.
    write_wait: float = 0.2
    # A write is expected to take this time in a namespace where none has ended yet: quick namespaces come first.
    write_unknown: float = 1.0
    # Writes take longer wherever the API server is busy: those below this time count as equally quick.
    write_quick: float = 1.0
