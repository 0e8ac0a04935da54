"""Whether a restart's new images can be pulled: a small pod pulls them before anything that runs is replaced. Pure.

The pod is on one of the nodes that the pool selects, needs no device, and does nothing. If it cannot be created or
scheduled, nothing is known, and the restart begins.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workergroups_api.conditions import Explanation
from workergroups_api.launch import digest
from workergroups_api.manifest import POD, RAY_CLUSTER, Manifest, name_of
from workergroups_api.names import CLUSTER_LABEL, COMPONENT_LABEL
from workergroups_api.resource_pool import ResourcePool
from workergroups_api.vocabulary import Component, Reason
from workergroups_operator.observed import Observed, entries, has_ended, node_group_of
from workergroups_operator.policy.pod_trouble import cannot_pull, failed_pull, is_starting
from workergroups_operator.templates import Templates
from workergroups_operator.templates.library import READ_ONLY
from workergroups_operator.templates.live import has_head_run, has_run, live_head, live_nodes
from workergroups_operator.templates.pod_parts import NOTHING_UNASKED

# What decides on which nodes a pod may be, and by which credentials its images are pulled.
_PLACEMENT = ("nodeSelector", "tolerations", "imagePullSecrets", "serviceAccountName")
_RESOURCES = {"cpu": "10m", "memory": "32Mi"}


@dataclass(frozen=True)
class ImageCheck:
    """A pod that pulls the new images of one pool, and what is known from it."""

    node_group: str
    pod: Manifest
    # Whether there is such a pod already.
    exists: bool
    # Why the restart must not begin; None if the images were pulled, or if the pod cannot tell.
    why: Explanation | None

    @property
    def name(self) -> str:
        """The pod's name."""
        return name_of(self.pod)


def image_checks(observed: Observed, templates: Templates) -> tuple[ImageCheck, ...]:
    """Return a check for each restart that would begin now, would end something, and has images that are new."""
    found = (_check(observed, templates, pool) for pool in observed.pools if node_group_of(pool) in templates.beginning)
    return tuple(check for check in found if check is not None)


def unpulled(
    checks: Sequence[ImageCheck], refused: Mapping[str, Explanation]
) -> tuple[dict[str, Explanation], dict[str, Explanation]]:
    """Return why restarts must wait for their images, by node group, and why the API server refuses other pods."""
    names = {check.name for check in checks}
    waiting = {check.node_group: check.why for check in checks if check.why and not _is_refused(check, refused)}
    return waiting, {name: why for name, why in refused.items() if name not in names}


def needed_pods(checks: Sequence[ImageCheck], waiting: Collection[str], blocked: Collection[str]) -> list[Manifest]:
    """Return the pods that should exist until their restarts have begun: none for one that is blocked anyway."""
    return [
        check.pod
        for check in checks
        if check.exists or (check.node_group in waiting and check.node_group not in blocked)
    ]


def _is_refused(check: ImageCheck, refused: Mapping[str, Explanation]) -> bool:
    return check.name in refused and refused[check.name].reason != Reason.ADMISSION_PENDING


def _check(observed: Observed, templates: Templates, pool: ResourcePool) -> ImageCheck | None:
    if observed.ray_cluster is None or not (has_run(observed, pool) or has_head_run(observed)):
        return None
    pairs = [(live_nodes(observed, pool), templates.of(pool))]
    if templates.replaces_head and pool is observed.pools[0]:
        pairs.append((live_head(observed), templates.head))
    changed = [(new, _images(new) - _images(live)) for live, new in pairs if live and _images(new) - _images(live)]
    if not changed:
        return None
    images = sorted({image for _, added in changed for image in added})
    pod = _pod(observed.key.name, observed.ray_cluster, changed[0][0]["spec"], images)
    live_pod = next((each for each in observed.pods_of(Component.IMAGE_CHECK) if name_of(each) == name_of(pod)), None)
    return ImageCheck(node_group_of(pool), pod, live_pod is not None, _why(images, live_pod))


def _images(template: Manifest) -> set[str]:
    """Return the images of a pod template. The user's part of it may be any JSON."""
    containers = [*entries(template, "initContainers"), *entries(template, "containers")]
    return {image for each in containers if isinstance(image := each.get("image"), str)}


def _pod(cluster: str, owner: Manifest, spec: Manifest, images: list[str]) -> Manifest:
    """Return the pod, named after all that it depends on; it belongs to the RayCluster, but is no pod of Ray's."""
    shape = {
        **{field: spec[field] for field in _PLACEMENT if spec.get(field)},
        **_node_affinity(spec.get("affinity")),
        **NOTHING_UNASKED,
        "terminationGracePeriodSeconds": 0,
        "containers": [_container(number, image) for number, image in enumerate(images)],
    }
    metadata = {
        "name": f"{cluster}-image-{digest(shape)[:8]}",
        "namespace": owner["metadata"]["namespace"],
        "labels": {CLUSTER_LABEL: cluster, COMPONENT_LABEL: Component.IMAGE_CHECK.value},
        "ownerReferences": [RAY_CLUSTER.reference(cluster, owner["metadata"]["uid"], controller=True)],
    }
    return POD.manifest(metadata, spec=shape)


def _node_affinity(affinity: Any) -> dict[str, Any]:
    """Return the part of an affinity that is about nodes: the rest would keep the pod apart from the pool's own."""
    part = affinity.get("nodeAffinity") if isinstance(affinity, Mapping) else None
    return {"affinity": {"nodeAffinity": part}} if part else {}


def _container(number: int, image: str) -> dict[str, Any]:
    return {
        "name": f"image-{number}",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        # Of an image that lacks it, the container fails, but only once the image has been pulled.
        "command": ["true"],
        "resources": {"requests": _RESOURCES, "limits": _RESOURCES},
        "securityContext": READ_ONLY,
    }


def _why(images: list[str], pod: Manifest | None) -> Explanation | None:
    """Return what keeps the restart from beginning, by the pod's status."""
    if pod is not None and has_ended(pod):
        return None  # Such as evicted: it was not replaced, and will not pull.
    status: dict[str, Any] = {} if pod is None else pod.get("status", {})
    if any(each["type"] == "PodScheduled" and each["status"] == "False" for each in status.get("conditions") or ()):
        return None
    containers = status.get("containerStatuses") or ()
    if (refused := next((each for each in containers if cannot_pull(each)), None)) is not None:
        return Explanation(
            Reason.IMAGE_PULL_FAILED,
            f"{failed_pull(refused)}; pod {name_of(pod or {})} goes on trying: correct the image or its "
            "imagePullSecrets, and the restart begins automatically, which ends the ranks",
        )
    if len(containers) < len(images) or any(map(is_starting, containers)):
        return Explanation(Reason.PULLING_IMAGE, f"waiting until a node has pulled {', '.join(images)}")
    return None
