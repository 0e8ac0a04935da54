"""Which namespace gets the next reconcile. Few reconciles run at once: each holds all objects of its cluster in memory.

Half of the reconciles go to namespaces in rotation, the other half to the one whose writes are the quickest. So each
gets a reconcile, and where hundreds of clusters wait for a slow admission webhook, those that do not wait for it come
first. While none is known to be slow yet, those come first whose writes are known to be quick.
"""

from collections.abc import Callable, Sequence

from workergroups_common.rotation import Rotation
from workergroups_operator.timings import Timings

# Reconciles at once, and those of one namespace.
RECONCILES = 8
NAMESPACE_RECONCILES = 4


class FairReconciles(Rotation):
    """Gives reconciles to namespaces."""

    def __init__(self, write_seconds: Callable[[str], float], timings: Timings) -> None:
        """`write_seconds`: how long a write in a namespace takes."""
        super().__init__(RECONCILES, NAMESPACE_RECONCILES)
        self._write_seconds = write_seconds
        self._quick = timings.write_quick
        self._is_quickest_next = False

    def _next(self, owners: Sequence[str]) -> str:
        is_quickest, self._is_quickest_next = self._is_quickest_next, not self._is_quickest_next
        return min(owners, key=self._rank) if is_quickest else owners[0]

    def _rank(self, namespace: str) -> float:
        seconds = self._write_seconds(namespace)
        return seconds if seconds >= self._quick else 0.0
