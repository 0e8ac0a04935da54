"""Which pods were made from an older template than that in the RayCluster."""

from collections.abc import Iterable

from workergroups_api.manifest import Manifest, name_of
from workergroups_operator.observed import runs_something
from workergroups_operator.policy.roll import has_begun
from workergroups_operator.templates.stamp import digest_of


def outdated(pods: Iterable[Manifest], template: Manifest) -> list[Manifest]:
    """Return the pods that were made from an older template, by name."""
    old = (pod for pod in pods if digest_of(pod) != digest_of(template))
    return sorted(old, key=name_of)


def superseded_head(heads: Iterable[Manifest], live: Manifest | None) -> Manifest | None:
    """Return a pod of the head that has never run and was made from an older template than the RayCluster has now.

    KubeRay replaces it by no other as long as it exists.
    """
    wanted = live and digest_of(live)
    old = (pod for pod in heads if digest_of(pod) not in (None, wanted) and not has_begun(pod))
    return next(old, None) if wanted else None


def superseded(pods: Iterable[Manifest], template: Manifest) -> list[str]:
    """Return the outdated pods in which nothing runs: they are in the way, and deleting them loses nothing.

    A pod without a digest is left out: an admission webhook may have removed it, and would remove it again.
    """
    return [name_of(pod) for pod in outdated(pods, template) if not runs_something(pod) and digest_of(pod) is not None]
