"""Which labels and annotations of a pool its RayCluster gets: those of queues and schedulers, by their domains.

All others stay behind. The tools that applied the pool recognize their objects by labels and annotations of their own
choice (Argo CD, Flux, Helm, `kubectl apply --prune`), and delete those that have them and are not in the source.
"""

from collections.abc import Mapping
from typing import Any

from workergroups_api.resource_pool import ResourcePool

# Kueue's label of an object that waits in a queue, and the annotation of elastic jobs: Kueue admits each change of
# their size separately, and keeps pods waiting by scheduling gates that the operator would have to respect.
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
_ELASTIC = "kueue.x-k8s.io/elastic-job"
_DOMAINS = (
    "kueue.x-k8s.io",
    "scheduling.k8s.io",
    "scheduling.x-k8s.io",
    "volcano.sh",
    "yunikorn.apache.org",
    "kai.scheduler",
)
# Of KubeRay's own, those for its batch schedulers: others change what the pods run.
_KEYS = ("ray.io/gang-scheduling-enabled", "ray.io/priority-class-name", "ray.io/scheduler-name")


def is_passed_on(key: str) -> bool:
    """Return whether RayClusters get labels and annotations with this key."""
    domain = key.partition("/")[0] if "/" in key else ""
    is_known = any(domain == known or domain.endswith(f".{known}") for known in _DOMAINS)
    return key in _KEYS or (is_known and key != _ELASTIC)


def passed_on(metadata: Mapping[str, Any], field: str) -> dict[str, str]:
    """Return the part of a pool's `labels` or `annotations` that its RayCluster gets."""
    return {key: value for key, value in (metadata.get(field) or {}).items() if is_passed_on(key)}


def ignored(pool: ResourcePool, oldest: ResourcePool) -> str | None:
    """Return the first label or annotation of a pool that its RayCluster lacks, since the oldest pool decides."""
    for field in ("labels", "annotations"):
        decided = passed_on(oldest.metadata, field)
        for key, value in sorted(passed_on(pool.metadata, field).items()):
            if decided.get(key) != value:
                return f"{key}={value}"
    return None
