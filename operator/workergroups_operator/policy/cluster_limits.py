"""How many pools and groups one cluster may have: what a reconcile costs grows with their number."""

from dataclasses import replace

from workergroups_api.conditions import Explanation
from workergroups_api.manifest import RESOURCE_POOL, WORKER_GROUP
from workergroups_api.vocabulary import Reason
from workergroups_operator.observed import Observed, unreadable

MAX_POOLS = 100
MAX_GROUPS = 1000


def within_limits(observed: Observed) -> Observed:
    """Return what was observed, with the youngest pools and groups beyond the limits as ones that cannot be served."""
    pools, groups = observed.pools[MAX_POOLS:], observed.groups[MAX_GROUPS:]
    if not pools and not groups:
        return observed
    served = observed.groups[:MAX_GROUPS]
    names = {group.name for group in served}
    return replace(
        observed,
        pools=observed.pools[:MAX_POOLS],
        groups=served,
        environments={name: each for name, each in observed.environments.items() if name in names},
        unreadable=(
            *observed.unreadable,
            *(unreadable(RESOURCE_POOL, pool, _explanation("ResourcePools", MAX_POOLS)) for pool in pools),
            *(unreadable(WORKER_GROUP, group, _explanation("WorkerGroups", MAX_GROUPS)) for group in groups),
        ),
    )


def _explanation(kind: str, limit: int) -> Explanation:
    return Explanation(
        Reason.CLUSTER_TOO_LARGE,
        f"a cluster may have {limit} {kind}, and that many are older than this: delete some of them, or use another "
        "spec.clusterName",
    )
