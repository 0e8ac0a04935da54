"""Reading of manifests of our kinds."""

from workergroups_api.resource_pool import ResourcePool
from workergroups_api.worker_group import WorkerGroup

KINDS = {"ResourcePool": ResourcePool, "WorkerGroup": WorkerGroup}


def left_out(manifest: object, known: object) -> list[str]:
    """Paths in a manifest that did not survive being read."""
    if isinstance(manifest, dict) and isinstance(known, dict):
        lost = [key for key in manifest if key not in known]
        return lost + [f"{key}.{path}" for key in manifest for path in left_out(manifest[key], known.get(key))]
    if isinstance(manifest, list) and isinstance(known, list):
        pairs = enumerate(zip(manifest, known, strict=False))
        return [f"[{index}].{path}" for index, pair in pairs for path in left_out(*pair)]
    return []
