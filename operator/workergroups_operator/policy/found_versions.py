"""Which Ray and Python are in a pod's image, according to the init container that looks at the image."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from workergroups_api.conditions import Explanation
from workergroups_api.manifest import Manifest, name_of
from workergroups_api.vocabulary import Container, Reason

# A user's image may write anything there; all else is no version.
_FOUND = re.compile(r"ray ([0-9]+\.[0-9]+[.0-9a-z+]{0,40}) python ([0-9]+\.[0-9]+)\.[0-9]+")


@dataclass(frozen=True)
class FoundVersions:
    """The versions that all nodes of one Ray cluster must share."""

    ray: str
    # Major and minor.
    python: str

    def __str__(self) -> str:
        return f"Ray {self.ray} on Python {self.python}"


def found_versions(pods: Iterable[Manifest]) -> FoundVersions | None:
    """Return the versions of the first pod, by name, whose image was looked at."""
    for pod in sorted(pods, key=name_of):
        for container in pod.get("status", {}).get("initContainerStatuses") or ():
            ended = container.get("state", {}).get("terminated") or {}
            match = _FOUND.fullmatch(str(ended.get("message", "")))
            if container["name"] == Container.CHECK and match:
                return FoundVersions(*match.groups())
    return None


def conflict(cluster: str, head: FoundVersions | None, node: FoundVersions | None) -> Explanation | None:
    """Explain why a node cannot join the head, if their versions differ."""
    if head is None or node is None or head == node:
        return None
    return Explanation(
        Reason.RAY_VERSION_CONFLICT,
        f"the pool's image has {node}, but the head of cluster {cluster} runs {head}: choose an image with the same, "
        "or another spec.clusterName",
    )
