"""The pods that Kubernetes has evicted lately: Ray misses their nodes up to ten seconds later, when they are gone."""

import time
from collections.abc import Callable, Iterable

from workergroups_api.manifest import Manifest
from workergroups_operator.membership import ClusterKey
from workergroups_operator.observed import disruption

# Much longer than Ray needs; after a restart of the operator, nothing is known of earlier ones.
_SECONDS = 600.0


class EvictedPods:
    """Remembers evicted pods of each cluster for a while."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: dict[ClusterKey, dict[str, tuple[float, Manifest]]] = {}

    def update(self, key: ClusterKey, pods: Iterable[Manifest]) -> tuple[Manifest, ...]:
        """Take note of a cluster's pods, and return those that were evicted lately and are gone."""
        now, present = self._clock(), {str(pod["metadata"]["uid"]): pod for pod in pods}
        seen = {uid: known for uid, known in self._seen.pop(key, {}).items() if now - known[0] < _SECONDS}
        seen |= {uid: (now, pod) for uid, pod in present.items() if disruption(pod) is not None}
        if seen:
            self._seen[key] = seen
        return tuple(pod for uid, (_, pod) in seen.items() if uid not in present)

    def forget(self, key: ClusterKey) -> None:
        """Forget a cluster."""
        self._seen.pop(key, None)
