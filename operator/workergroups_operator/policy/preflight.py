"""What the agent checks on the nodes of a pool before groups are launched there."""

from workergroups_api.manifest import Manifest
from workergroups_api.plan import PlannedPreflight
from workergroups_api.resource_pool import ResourcePool
from workergroups_api.vocabulary import Container, Preflight
from workergroups_common.quantities import bytes_of

SHARED_MEMORY_PATH = "/dev/shm"


def planned_preflight(pool: ResourcePool, template: Manifest) -> PlannedPreflight | None:
    """Return what is checked, None if nothing is: what the pods were created with, not what waits for a restart.

    Args:
        pool: The pool.
        template: The template from which the pods of its nodes were created.
    """
    if pool.spec.preflight is Preflight.NONE:
        return None
    spec = template["spec"]
    volumes = {volume["name"]: volume for volume in spec.get("volumes") or ()}
    mounts = [
        mount
        for container in spec["containers"]
        if container["name"] == Container.WORKER
        for mount in container.get("volumeMounts") or ()
    ]
    writable = {mount["mountPath"]: volumes.get(mount["name"], {}) for mount in mounts if not mount.get("readOnly")}
    size = (writable.get(SHARED_MEMORY_PATH, {}).get("emptyDir") or {}).get("sizeLimit")
    return PlannedPreflight(
        level=pool.spec.preflight,
        shared_memory=None if size is None else bytes_of(str(size)),
        writable=tuple(path for path in pool.spec.writable_directories if path in writable),
    )
