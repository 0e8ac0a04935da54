"""Which groups fit into one plan: etcd limits the size of its ConfigMap, and that of the agent's Role.

The estimate is an upper bound that depends on nothing that changes while a group runs.
"""

from collections.abc import Collection, Mapping, Sequence

from workergroups_api.conditions import Explanation
from workergroups_api.failure_policy import FailurePolicy
from workergroups_api.plan import MAX_BIRTHS, PlannedBundles
from workergroups_api.vocabulary import Reason, Restart
from workergroups_operator.policy.bundles import Assignment, Blocked

# A ConfigMap may have 1 MiB; pools take the rest.
MAX_BYTES = 900_000
# Of a group: its name, digests and counts in the plan, or its name twice and its ConfigMap's name in the Role.
_GROUP_BYTES = 640
# Of each restart that its failure policy counts.
_RESTART_BYTES = 24
# Of its run, if it has one.
_RUN_BYTES = 192
# Of each rank that was recreated alone.
_BIRTH_BYTES = 24
# Of each pool that it names.
_PART_BYTES = 160


def within_budget(
    assigned: Mapping[str, Assignment], policies: Mapping[str, FailurePolicy], runs: Collection[str] = ()
) -> dict[str, Assignment]:
    """Return the assignments of the groups that fit in the plan, in the order given; the others are blocked.

    Args:
        assigned: The assignment of each group.
        policies: The failure policy of each group.
        runs: The groups that have a method to run.
    """
    used = 0
    found: dict[str, Assignment] = {}
    for name, assignment in assigned.items():
        parts = assignment.bundles
        if not isinstance(assignment, Blocked):
            size = _GROUP_BYTES + _PART_BYTES * len(parts) + _history_bytes(policies[name], parts)
            size += _RUN_BYTES if name in runs else 0
            if used + size > MAX_BYTES:
                assignment = Blocked(_explanation(used + size))
            else:
                used += size
        found[name] = assignment
    return found


def _history_bytes(policy: FailurePolicy, parts: Sequence[PlannedBundles]) -> int:
    world_size = sum(part.count for part in parts)
    births = min(MAX_BIRTHS, world_size) if policy.restart is Restart.RANK else 0
    return _RESTART_BYTES * policy.max_restarts + _BIRTH_BYTES * births


def _explanation(size: int) -> Explanation:
    return Explanation(
        Reason.CLUSTER_TOO_LARGE,
        f"with this group the plan of the cluster may need {size} bytes, and may have {MAX_BYTES}: delete a group, or "
        "put this one on pools with another spec.clusterName",
    )
