"""Whether a head that is gone may come back with all it knew, so that its nodes and ranks only wait for it.

The head's GCS keeps its state on a volume. One in the head's pod outlives the head's container; a claim outlives the
pod. Ray can do this since 2.60.
"""

import re

from workergroups_api.vocabulary import Component
from workergroups_operator.observed import Observed, is_running
from workergroups_operator.policy.found_versions import found_versions
from workergroups_operator.policy.queueing import is_suspended

_SINCE = (2, 60)
_NUMBERS = re.compile("[0-9]+")


def head_may_return(observed: Observed) -> bool:
    """Return whether the next start of the head may continue the Ray session that the agent was last connected to."""
    known, heads = observed.agent.known, observed.pods_of(Component.HEAD)
    if known is None or observed.ray_cluster is None or is_suspended(observed.ray_cluster):
        return False
    found = found_versions(heads)
    if found is not None and tuple(int(number) for number in _NUMBERS.findall(found.ray)[:2]) < _SINCE:
        return False
    pod, session = known[0].partition("/")[0], known[1]
    if session not in {pool.status.reservation.session for pool in observed.pools if pool.status.reservation}:
        return False  # it was the session of an earlier cluster of this name
    is_same_pod = any(each["metadata"]["uid"] == pod for each in heads if is_running(each))
    return is_same_pod or _has_claim(observed)


def _has_claim(observed: Observed) -> bool:
    head = observed.pools[0].spec.head if observed.pools else None
    return head is not None and head.gcs_storage is not None
