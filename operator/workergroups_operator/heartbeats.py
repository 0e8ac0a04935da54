"""The agents' heartbeats, as this process sees them: each Lease's renewals, timed by this process's own clock.

An agent that is connected to Ray renews its Lease every 2.5 seconds. The operator suspects an agent that is late. The
agent counts as silent only if a second reading, some seconds later, still finds it late: both readings reached the API
server, so the agent could have reached it, too. The same holds for all agents when this process starts.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from workergroups_api.bounded_text import MAX_TERM
from workergroups_api.manifest import Manifest, annotations_of
from workergroups_api.names import DOUBTS_ANNOTATION, HEAD_ANNOTATION, SESSION_ANNOTATION
from workergroups_api.vouching import from_annotation, within_limit
from workergroups_operator.membership import ClusterKey
from workergroups_operator.observed import AgentHeartbeat
from workergroups_operator.timings import Timings

# Longer than an answer of the API server takes. What is older than what was seen before that is no late answer:
# the API server was restored from a backup.
_OVERTAKEN_SECONDS = 30.0


@dataclass
class _Heartbeat:
    renewed: str | None
    session: str | None
    # When the Lease last changed, or was first seen: until it changes, `is_fresh` is False.
    changed: float
    is_fresh: bool = False
    was_called_late: bool = False
    suspected: float | None = None
    away: float | None = None
    head: str | None = None
    head_seen: float = 0.0
    # Whether this process saw the cluster before it had any pod, and only this head since; None before it looked.
    is_first_head: bool | None = None
    # The head and the session in the operator's annotations of the Lease.
    known: tuple[str, str] | None = None
    # Why the agent does not vouch for an object's status, by UID.
    doubts: Mapping[str, str] = field(default_factory=dict)
    # The latest version of the Lease, 0 if it is not known, and when it was last seen.
    version: int = 0
    seen: float = 0.0
    # How many Leases had news.
    news: int = 0


class Heartbeats:
    """What the operator remembers of each cluster's agent."""

    def __init__(self, timings: Timings, clock: Callable[[], float] = time.monotonic) -> None:
        self._timings = timings
        self._clock = clock
        self._beats: dict[ClusterKey, _Heartbeat] = {}

    def news(self, key: ClusterKey) -> int:
        """Return how many Leases of the cluster had news: after other news, the agent may vouch for other statuses."""
        return self._beats[key].news if key in self._beats else 0

    def note(self, key: ClusterKey, lease: Manifest | None) -> bool:
        """Take note of a Lease. Return whether it requires a reconcile.

        Reconciles read the Lease, and a watch reports it. Either may be late: what is older than what is known already
        is no renewal.
        """
        is_news = self._note(key, lease)
        self._beats[key].news += is_news
        return is_news

    def _note(self, key: ClusterKey, lease: Manifest | None) -> bool:
        spec, now, version = (lease or {}).get("spec") or {}, self._clock(), _version(lease)
        doubts = from_annotation(annotations_of(lease).get(DOUBTS_ANNOTATION))
        renewed, session = _short(spec.get("renewTime")), _short(spec.get("holderIdentity"))
        beat = self._beats.get(key)
        if beat is None:
            known = _known(lease)
            self._beats[key] = _Heartbeat(renewed, session, now, known=known, doubts=doubts, version=version, seen=now)
            return True
        if version:
            if version < beat.version and now - beat.seen < _OVERTAKEN_SECONDS:
                return False
            beat.version, beat.seen = version, now
        # The operator recreates a Lease that was deleted, with what it said before.
        beat.known = _known(lease) or beat.known
        # Only a holder withdraws a doubt: an agent that has just started does not know its predecessor's doubts.
        before = beat.doubts
        beat.doubts = doubts if session is not None else within_limit({**before, **doubts})
        has_other_doubts = beat.doubts.keys() != before.keys()
        if (renewed, session) == (beat.renewed, beat.session):
            return has_other_doubts
        # From this renewal on, the Lease is about the present head.
        is_of_head = beat.changed < beat.head_seen + self._timings.session_stale <= now
        is_other = has_other_doubts or session != beat.session
        is_news = is_of_head or is_other or beat.suspected is not None or beat.away is not None
        beat.renewed, beat.session, beat.changed = renewed, session, now
        beat.is_fresh, beat.was_called_late, beat.suspected = True, False, None
        if session is not None and (beat.away is None or beat.changed > beat.away):
            beat.away = None
        return is_news

    def update(self, key: ClusterKey, head: str | None, *, has_pod: bool, is_empty: bool) -> AgentHeartbeat:
        """Take note of a cluster's pods, right after `note` took note of its Lease; return what the agent shows now.

        `has_pod` is whether a pod of the agent runs, `is_empty` whether the cluster has no pod at all.
        """
        beat, now = self._beats[key], self._clock()
        if beat.is_first_head is None:
            beat.is_first_head = is_empty
        if head != beat.head:
            beat.is_first_head = beat.is_first_head and beat.head is None
            beat.head, beat.head_seen = head, now
        if beat.suspected is None and (not beat.is_fresh or now - beat.changed >= self._timings.lease_late):
            beat.suspected = now
        if beat.away is None and (beat.session is None or not has_pod):
            beat.away = now
        is_silent = beat.suspected is not None and now - beat.suspected >= self._timings.lease_confirm
        away = 0.0 if beat.away is None else max(now - beat.away, 1e-3)
        waits = (
            [self._timings.lease_confirm - (now - beat.suspected)]
            if beat.suspected is not None and not is_silent
            else []
        )
        waits += [self._timings.agent_away - away] if 0 < away < self._timings.agent_away else []
        with_head = beat.changed - beat.head_seen if beat.is_fresh and beat.changed >= beat.head_seen else None
        look_again = min(waits, default=float("inf")) + 0.05
        return AgentHeartbeat(
            beat.session, beat.known, away, is_silent, beat.is_first_head, with_head, look_again, beat.doubts
        )

    def late(self) -> list[ClusterKey]:
        """Return the clusters whose agent has become late, each once."""
        now = self._clock()
        late = [key for key, beat in self._beats.items() if now - beat.changed >= self._timings.lease_late]
        fresh = [key for key in late if not self._beats[key].was_called_late]
        for key in fresh:
            self._beats[key].was_called_late = True
        return fresh

    def silences(self) -> dict[ClusterKey, float]:
        """Return for how many seconds each agent that should be there has not renewed its Lease.

        A scrape calls this in its thread.
        """
        now = self._clock()
        return {key: now - beat.changed for key, beat in list(self._beats.items()) if beat.away is None}

    def forget(self, key: ClusterKey) -> None:
        """Forget a cluster that is gone."""
        self._beats.pop(key, None)


def _known(lease: Manifest | None) -> tuple[str, str] | None:
    annotations = annotations_of(lease)
    head, session = (_short(annotations.get(key)) for key in (HEAD_ANNOTATION, SESSION_ANNOTATION))
    return (head, session) if head and session else None


def _short(text: Any) -> str | None:
    """Return a text of a Lease, which the plan may repeat for each group; None for one that is none of ours."""
    return text if isinstance(text, str) and len(text) <= MAX_TERM else None


def _version(lease: Manifest | None) -> int:
    """Return the Lease's resource version, which the API server counts up from 1; 0 if it is not a number."""
    version = str((lease or {"metadata": {}})["metadata"].get("resourceVersion"))
    return int(version) if version.isdecimal() else 0
