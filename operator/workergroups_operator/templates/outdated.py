"""Which pods were made from an older template than the present one."""

from collections.abc import Iterable

from workergroups_api.manifest import Manifest
from workergroups_api.names import TEMPLATE_ANNOTATION
from workergroups_operator.observed import runs_something


def outdated(pods: Iterable[Manifest], template: Manifest) -> list[Manifest]:
    """Return the pods that were made from an older template, by name."""
    wanted = template["metadata"]["annotations"][TEMPLATE_ANNOTATION]
    old = (pod for pod in pods if pod["metadata"].get("annotations", {}).get(TEMPLATE_ANNOTATION) != wanted)
    return sorted(old, key=lambda pod: str(pod["metadata"]["name"]))


def superseded(pods: Iterable[Manifest], template: Manifest) -> list[str]:
    """Return the outdated pods in which nothing runs: they are in the way, and deleting them loses nothing.

    A pod without a digest is left out: an admission webhook may have removed it, and would remove it again.
    """
    return [
        str(pod["metadata"]["name"])
        for pod in outdated(pods, template)
        if not runs_something(pod) and TEMPLATE_ANNOTATION in pod["metadata"].get("annotations", {})
    ]
