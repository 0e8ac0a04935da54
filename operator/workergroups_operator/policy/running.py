"""What a running cluster keeps: image and Ray that it was started with, whatever the operator's defaults are now."""

from dataclasses import dataclass

from workergroups_api import names
from workergroups_api.resource_pool import ResourcePool
from workergroups_operator.observed import HEAD_CONTAINER, Observed
from workergroups_operator.settings import Settings


@dataclass(frozen=True)
class Versions:
    """Images and Ray version of a cluster."""

    # Of pools that name none.
    default_image: str
    default_ray_version: str
    head_image: str
    ray_version: str
    # What a pool that names no image would get on a cluster that starts now.
    offered_image: str


def versions(observed: Observed, settings: Settings) -> Versions:
    """Those of the running cluster; for a new one, the oldest pool's, or the operator's defaults."""
    cluster = observed.ray_cluster
    if cluster is None:
        oldest = observed.pools[0].spec if observed.pools else None
        return Versions(
            default_image=settings.worker_image,
            default_ray_version=settings.ray_version,
            head_image=(oldest and oldest.image) or settings.worker_image,
            ray_version=(oldest and oldest.ray_version) or settings.ray_version,
            offered_image=settings.worker_image,
        )
    annotations = cluster["metadata"].get("annotations", {})
    spec = cluster["spec"]
    containers = spec["headGroupSpec"]["template"]["spec"]["containers"]
    return Versions(
        default_image=str(annotations.get(names.IMAGE_ANNOTATION, settings.worker_image)),
        default_ray_version=str(annotations.get(names.RAY_VERSION_ANNOTATION, settings.ray_version)),
        head_image=next(
            (str(each["image"]) for each in containers if each["name"] == HEAD_CONTAINER), settings.worker_image
        ),
        ray_version=str(spec.get("rayVersion", settings.ray_version)),
        offered_image=settings.worker_image,
    )


def image(pool: ResourcePool, running: Versions) -> str:
    """The pool's image, or the default of the time when its cluster was started."""
    return pool.spec.image or running.default_image
