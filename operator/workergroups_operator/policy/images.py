"""What a running cluster keeps: the images that it was started with, whatever the specs and defaults are now.

A restart of the pool that shapes the head gives the head the image of the pool's spec. If the pool is alone on its
cluster, the cluster also gets the present defaults.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from workergroups_api import names
from workergroups_api.manifest import annotations_of
from workergroups_api.resource_pool import MAX_IMAGE, ResourcePool
from workergroups_operator.observed import Observed
from workergroups_operator.settings import Settings


@dataclass(frozen=True)
class Images:
    """The images of a cluster."""

    # For pools that name no image.
    default: str
    head: str
    # The operator's image, from which Ray's pods get the library and the executor.
    library: str
    # The image of the agent's reporter, with the code of the observer. It is always the operator's present one: the
    # reporter has a Kubernetes token, and users can edit the annotations of the RayCluster.
    agent: str
    # What `default` and `library` would be if the cluster started now.
    offered_default: str
    offered_library: str


def images_of(observed: Observed, settings: Settings) -> Images:
    """Return the images of the running cluster; for a new one, the oldest pool's, or the operator's defaults.

    Annotations record those of a running cluster, since anyone may edit its spec.
    """
    oldest = observed.pools[0].spec if observed.pools else None
    noted = annotations_of(observed.ray_cluster)
    return Images(
        default=_noted(noted, names.DEFAULT_IMAGE_ANNOTATION) or settings.worker_image,
        head=_noted(noted, names.HEAD_IMAGE_ANNOTATION) or (oldest and oldest.image) or settings.worker_image,
        library=_noted(noted, names.LIBRARY_IMAGE_ANNOTATION) or settings.operator_image,
        agent=settings.operator_image,
        offered_default=settings.worker_image,
        offered_library=settings.operator_image,
    )


def _noted(annotations: Mapping[str, str], name: str) -> str | None:
    """Return a note of an image, which each pod template would repeat; None for one that is none of ours."""
    image = annotations.get(name, "")
    return image if 0 < len(image) <= MAX_IMAGE else None


def as_asked(images: Images, oldest: ResourcePool) -> Images:
    """Return the images with the head's image that the oldest pool asks for now."""
    return replace(images, head=image_of(oldest, images))


def as_offered(images: Images, oldest: ResourcePool) -> Images:
    """Return the images that the cluster would have if it started now."""
    return as_asked(replace(images, default=images.offered_default, library=images.offered_library), oldest)


def image_of(pool: ResourcePool, images: Images) -> str:
    """Return the pool's image, or the default of the time when its cluster started."""
    return pool.spec.image or images.default
