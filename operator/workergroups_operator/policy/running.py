"""What a running cluster keeps: image and Ray that it was started with, whatever the operator's defaults are now."""

from dataclasses import dataclass

from workergroups_api import names
from workergroups_api.manifest import Manifest
from workergroups_api.resource_pool import ResourcePool
from workergroups_operator.observed import Observed
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
    """Those of the running cluster; for a new one, the oldest pool's, or the operator's defaults.

    A running cluster's are noted in annotations: its spec may be edited by anyone.
    """
    oldest = observed.pools[0].spec if observed.pools else None
    cluster: Manifest = observed.ray_cluster or {"metadata": {}}
    noted = cluster["metadata"].get("annotations", {})
    return Versions(
        default_image=noted.get(names.IMAGE_ANNOTATION, settings.worker_image),
        default_ray_version=noted.get(names.RAY_VERSION_ANNOTATION, settings.ray_version),
        head_image=noted.get(names.HEAD_IMAGE_ANNOTATION, (oldest and oldest.image) or settings.worker_image),
        ray_version=noted.get(names.STARTED_RAY_ANNOTATION, (oldest and oldest.ray_version) or settings.ray_version),
        offered_image=settings.worker_image,
    )


def image(pool: ResourcePool, running: Versions) -> str:
    """The pool's image, or the default of the time when its cluster was started."""
    return pool.spec.image or running.default_image
