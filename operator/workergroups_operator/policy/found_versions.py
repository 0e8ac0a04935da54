"""Which Ray and Python are in a pod's image, as the init container found that looks at it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from workergroups_api.conditions import Explanation
from workergroups_api.manifest import Manifest
from workergroups_api.vocabulary import Container, Reason

# Whatever else a user's image writes there is no version.
_FOUND = re.compile(r"ray ([0-9]+\.[0-9]+[.0-9a-z+]{0,40}) python ([0-9]+\.[0-9]+)\.[0-9]+")


@dataclass(frozen=True)
class FoundVersions:
    """Where nodes of one Ray cluster must agree."""

    ray: str
    # Major and minor.
    python: str

    def __str__(self) -> str:
        return f"Ray {self.ray} on Python {self.python}"


def found_versions(pods: Iterable[Manifest]) -> FoundVersions | None:
    """Those of the first pod, by name, in whose image something was found."""
    for pod in sorted(pods, key=lambda pod: str(pod["metadata"]["name"])):
        for container in pod.get("status", {}).get("initContainerStatuses") or ():
            ended = container.get("state", {}).get("terminated") or {}
            match = _FOUND.fullmatch(str(ended.get("message", "")))
            if container["name"] == Container.CHECK and match:
                return FoundVersions(*match.groups())
    return None


def conflict(cluster: str, head: FoundVersions | None, node: FoundVersions | None) -> Explanation | None:
    """Why a node with the one cannot join a head with the other."""
    if head is None or node is None or head == node:
        return None
    return Explanation(
        Reason.RAY_VERSION_CONFLICT,
        f"the pool's image has {node}, but the head of cluster {cluster} runs {head}: choose an image with the same, "
        "or another spec.clusterName",
    )
