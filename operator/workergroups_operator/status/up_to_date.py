"""Whether what runs is what is written: old templates, images, and code that still run are said."""

from workergroups_api.conditions import Finding
from workergroups_api.report import GroupReport
from workergroups_api.resource_pool import ResourcePool
from workergroups_api.vocabulary import Component, ConditionType, Reason
from workergroups_api.worker_group import WorkerGroup
from workergroups_operator.observed import node_group_of
from workergroups_operator.status.conclusion import Situation
from workergroups_operator.templates.outdated import outdated


def pool_up_to_date(pool: ResourcePool, situation: Situation) -> Finding:
    """Pods are made from the template that is written down."""
    pods = situation.observed.pods_of(Component.WORKER, node_group_of(pool))
    old = outdated(pods, situation.templates.of(pool))
    if old:
        first = old[0]["metadata"]["name"]
        return _finding(
            "False",
            Reason.OLD_TEMPLATE,
            f"{len(old)} of {len(pods)} pods were made from an older template, {first} first: delete them to have "
            "them made anew; the ranks in them end",
        )
    images = situation.templates.images
    if pool.spec.image is None and images.default != images.offered_default:
        return _finding(
            "False",
            Reason.OLD_IMAGE,
            f"the cluster runs {images.default}, the default is now {images.offered_default}: delete RayCluster "
            f"{pool.cluster} to have it started anew; its ranks end",
        )
    if images.library != images.offered_library:
        return _finding(
            "False",
            Reason.OLD_LIBRARY,
            f"the cluster has the library of {images.library}, the operator is now {images.offered_library}: "
            f"delete RayCluster {pool.cluster} to have it started anew; its ranks end",
        )
    return _finding("True", Reason.UP_TO_DATE, "")


def group_up_to_date(group: WorkerGroup, situation: Situation) -> Finding:
    """Ranks are made from the worker, env and code that are written down."""
    incarnation = situation.decisions.incarnations.get(group.name)
    if incarnation is None or incarnation.revision is None:
        return _finding("Unknown", Reason.NOT_LAUNCHED, "nothing has been launched yet")
    if situation.observed.written[group.name] is None:
        return _finding(
            "Unknown",
            Reason.CODE_MISSING,
            f"there is no ConfigMap {group.launch.config_map} any more; the ranks go on with the code that it had",
        )
    report = group.status.ranks or GroupReport()
    if report.incarnation != incarnation.number:
        return _finding(
            "False",
            Reason.OLD_INCARNATION,
            f"incarnation {incarnation.number} is to run, the agent has said nothing of it yet",
        )
    return _finding("True", Reason.UP_TO_DATE, "")


def _finding(status: str, reason: str, message: str) -> Finding:
    return Finding.model_validate(
        {"type": ConditionType.UP_TO_DATE, "status": status, "reason": reason, "message": message}
    )
