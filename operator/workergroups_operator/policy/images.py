"""What a running cluster keeps: the images that it was started with, whatever the operator's defaults are now."""

from dataclasses import dataclass

from workergroups_api import names
from workergroups_api.manifest import Manifest
from workergroups_api.resource_pool import ResourcePool
from workergroups_operator.observed import Observed
from workergroups_operator.settings import Settings


@dataclass(frozen=True)
class Images:
    """Images of a cluster."""

    # Of pools that name none.
    default: str
    head: str
    # With the library and the executor, for the pods of Ray: the operator's own.
    library: str
    # Of the agent's reporter, and with the code of its other container. Always the operator's present one: the reporter
    # has a Kubernetes token, and what is noted on the RayCluster can be edited by users.
    agent: str
    # What the first and the last would be on a cluster that starts now.
    offered_default: str
    offered_library: str


def images_of(observed: Observed, settings: Settings) -> Images:
    """Those of the running cluster; for a new one, the oldest pool's, or the operator's defaults.

    A running cluster's are noted in annotations: its spec may be edited by anyone.
    """
    oldest = observed.pools[0].spec if observed.pools else None
    cluster: Manifest = observed.ray_cluster or {"metadata": {}}
    noted = cluster["metadata"].get("annotations", {})
    return Images(
        default=noted.get(names.DEFAULT_IMAGE_ANNOTATION, settings.worker_image),
        head=noted.get(names.HEAD_IMAGE_ANNOTATION, (oldest and oldest.image) or settings.worker_image),
        library=noted.get(names.LIBRARY_IMAGE_ANNOTATION, settings.operator_image),
        agent=settings.operator_image,
        offered_default=settings.worker_image,
        offered_library=settings.operator_image,
    )


def image_of(pool: ResourcePool, images: Images) -> str:
    """The pool's image, or the default of the time when its cluster was started."""
    return pool.spec.image or images.default
