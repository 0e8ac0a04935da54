"""What the pure steps of a turn cost at the maxima of the schemas: `python -m bench.largest_clusters`.

It prints the seconds of CPU for clusters in which one number is at its maximum, and for the products of these. The
steps of a large cluster run beside the event loop, so that other namespaces share the processor with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from time import process_time
from typing import Any

from tests.unit.operator.make import CONNECTED, SESSION, SETTINGS, TIMINGS, group, observed, pod, pool
from workergroups_api.manifest import Manifest
from workergroups_api.plan import MAX_BIRTHS, MAX_NODE_PROCESSES, MAX_POOL_NODES
from workergroups_common.ranges import ranges
from workergroups_operator.isolation import pure_steps
from workergroups_operator.observed import Observed, node_group_of
from workergroups_operator.policy.cluster_limits import MAX_GROUPS, MAX_POOLS

_PARTS = 16
"""The pools that a group can name."""
_EVERY_OTHER = ranges(range(0, 2000, 2))
"""More ranges than a status keeps."""
_REPORTED: Mapping[str, Any] = {
    "incarnation": 1,
    "session": SESSION,
    "births": {str(rank): 1 for rank in range(MAX_BIRTHS)},
    "bundles": [{"pool": "p0", "start": 0, "count": 2048}],
    "ranks": {
        "session": SESSION,
        "incarnation": 1,
        "state": "Launched",
        "ready": _EVERY_OTHER,
        "failed": _EVERY_OTHER,
        "paused": _EVERY_OTHER,
        "failures": [{"rank": 0, "reason": "ProcessDied", "message": "x" * 2048}],
    },
}


def cluster(
    pools: int = 1, nodes: int = 1, processes: int = 1, groups: int = 1, *, pods: bool = False, reports: bool = False
) -> Observed:
    """Return a cluster of that many of each. Its groups name all pools that a group can name, in ranges of bundles."""
    made = tuple(pool(f"p{number}", nodes, processes, maxColocateCount=100) for number in range(pools))
    named = made[:_PARTS]
    size = max(1, nodes * processes // 16)
    more: dict[str, Any] = {"status": _REPORTED, "failurePolicy": {"restart": "Rank"}} if reports else {}
    return observed(
        pools=made,
        groups=tuple(
            group(
                f"g{number}",
                [{"name": each.name, "bundles": {"start": number % size, "count": size}} for each in named],
                **more,
            )
            for number in range(groups)
        ),
        pods=(pod("head"), *(_node(node_group_of(each), n) for each in made for n in range(nodes if pods else 0))),
        agent=CONNECTED,
    )


def _node(node_group: str, number: int) -> Manifest:
    body = pod("worker", f"{node_group}-{number}")
    body["metadata"]["labels"]["ray.io/group"] = node_group
    return body


def main() -> None:
    """Measure, and print a row for each cluster."""
    largest = {"nodes": MAX_POOL_NODES, "processes": MAX_NODE_PROCESSES}
    rows: dict[str, dict[str, Any]] = {
        "the smallest": {},
        "the largest pool": largest,
        f"{_PARTS} largest pools": {"pools": _PARTS, **largest},
        f"{_PARTS} largest pools, 64 groups": {"pools": _PARTS, "groups": 64, **largest},
        f"{MAX_POOLS} largest pools": {"pools": MAX_POOLS, **largest},
        f"{MAX_GROUPS} groups": {"groups": MAX_GROUPS},
        f"{MAX_GROUPS} groups with the largest reports": {"groups": MAX_GROUPS, "reports": True},
        f"{_PARTS} largest pools, their pods": {"pools": _PARTS, "pods": True, **largest},
        "all of these": {"pools": MAX_POOLS, "groups": MAX_GROUPS, "pods": True, "reports": True, **largest},
    }
    steps = pure_steps(SETTINGS, TIMINGS)
    for what, numbers in rows.items():
        seen = cluster(**numbers)
        began = process_time()
        steps(seen)
        print(f"{process_time() - began:8.3f} s  {what}", flush=True)


if __name__ == "__main__":
    main()
