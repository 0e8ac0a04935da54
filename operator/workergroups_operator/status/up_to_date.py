"""The condition UpToDate: whether pods and ranks were made from the present specs, images and code."""

from collections.abc import Sequence

from workergroups_api.conditions import ConditionStatus, Explanation, Finding
from workergroups_api.manifest import NETWORK_POLICY, Manifest
from workergroups_api.names import RESTARTED_AT_ANNOTATION
from workergroups_api.report import GroupReport
from workergroups_api.resource_pool import ResourcePool
from workergroups_api.roll_names import asked_roll
from workergroups_api.vocabulary import Component, ConditionType, Reason, Resize
from workergroups_api.worker_group import WorkerGroup
from workergroups_operator.observed import node_group_of
from workergroups_operator.policy.keep_unreadable import kept_node_groups
from workergroups_operator.policy.passed_on import ignored, passed_on
from workergroups_operator.policy.queueing import is_held
from workergroups_operator.policy.suspension import terminating_pools
from workergroups_operator.status.conclusion import StatusInputs
from workergroups_operator.templates.live import admitted_head, admitted_nodes, last_roll
from workergroups_operator.templates.outdated import outdated
from workergroups_operator.templates.stamp import changed_fields, digest_of, is_made_from, is_of_other_pool


def pool_up_to_date(pool: ResourcePool, inputs: StatusInputs) -> Finding:
    """Find out whether the pool has its size, and its pods the present template, image, library and NetworkPolicy."""
    blocked = inputs.decisions.blocked_rolls.get(node_group_of(pool))
    if blocked is not None:
        message = f"no pod is replaced before this has ended: {blocked.message}"
        if asked_roll(pool.metadata, last_roll(inputs.observed, pool)) is not None:
            cancel = f"kubectl annotate resourcepool {pool.name} {RESTARTED_AT_ANNOTATION}-"
            message += f"; to cancel it: {pool.in_namespace(cancel)}"
        return _finding("False", blocked.reason, message)
    why = inputs.failures.of(NETWORK_POLICY) or _ignored(pool, inputs) or _changes_wait(pool, inputs)
    why = why or _shrinking(pool, inputs) or _old_pods(pool, inputs) or _old_images(pool, inputs)
    return _finding("False", why.reason, why.message) if why else _true()


def _ignored(pool: ResourcePool, inputs: StatusInputs) -> Explanation | None:
    """Explain which of the pool's labels and annotations the RayCluster does not have, and why."""
    decided_by = inputs.observed.pools[0]
    label = ignored(pool, decided_by)
    if label is None:
        return None
    return Explanation(
        Reason.LABEL_IGNORED,
        f"{label} is not on RayCluster {pool.cluster}, which has the labels and annotations of its oldest pool, "
        f"{decided_by.name}: set the same there, or give this pool its own spec.clusterName",
    )


def _changes_wait(pool: ResourcePool, inputs: StatusInputs) -> Explanation | None:
    """Explain what waits because a queue runs the RayCluster as it was admitted."""
    what = _waits(pool, inputs) if is_held(inputs.observed) else None
    if what is None:
        return None
    return Explanation(
        Reason.CHANGES_WAIT,
        f"{what}, since the queue runs RayCluster {pool.cluster} as it admitted it: to apply it now, delete the "
        "RayCluster, which ends its ranks and queues it again",
    )


def _old_pods(pool: ResourcePool, inputs: StatusInputs) -> Explanation | None:
    """Explain which pods differ from the spec, in which fields, and what a restart would recreate."""
    if pool.name in terminating_pools(inputs.observed, inputs.decisions.suspended_pools.keys()):
        return None
    templates, pods = inputs.templates, inputs.observed.pods_of(Component.WORKER, node_group_of(pool))
    asked, old = templates.asked_of(pool), outdated(pods, templates.asked_of(pool))
    is_head_old = _is_head_old(pool, templates.asked_head, templates.head)
    if old or not _is_same(templates.of(pool), asked):
        fields = changed_fields(_made_from(old, templates.of(pool)), asked)
    elif is_head_old:
        fields = changed_fields(templates.head, templates.asked_head)
    else:
        return None
    unnamed = "an unknown field" if fields is None else "what the operator adds to pods"
    what = "; ".join(fields) if fields else unnamed
    count = f"{len(old)} of {len(pods)} nodes are older than the spec" if old else "the nodes are as the spec says"
    head_too = ", and so is the head" if old else ", but the head is older"
    head = f"{head_too}, with which all groups and jobs of the cluster restart" if is_head_old else ""
    is_image = fields is not None and any(field.startswith("image:") for field in fields)
    is_under_way = node_group_of(pool) in inputs.decisions.rolls and _is_same(templates.of(pool), asked)
    what_to_do = f"to replace what is old: {_restart(pool)}; to keep it, set the spec back"
    way_out = "a restart has begun to replace them" if is_under_way else what_to_do
    return Explanation(Reason.OLD_IMAGE if is_image else Reason.OLD_TEMPLATE, f"{what}: {count}{head}; {way_out}")


def _made_from(old: Sequence[Manifest], template: Manifest) -> Manifest:
    """Return what has the notes of the old pods: the RayCluster's template, unless they are older than that, too."""
    return old[0] if old and not _is_same(old[0], template) else template


def _is_same(one: Manifest, other: Manifest) -> bool:
    return digest_of(one) == digest_of(other)


def _is_head_old(pool: ResourcePool, asked: Manifest, head: Manifest) -> bool:
    """Return whether the pool shapes the head, and a restart of the pool would replace it."""
    return is_made_from(asked, pool) and not _is_same(asked, head) and not is_of_other_pool(head, asked)


def _old_images(pool: ResourcePool, inputs: StatusInputs) -> Explanation | None:
    """Explain which of the operator's present images the cluster does not have."""
    images = inputs.templates.images
    is_alone = len(inputs.observed.pools) == 1
    can_restart = is_alone and not is_held(inputs.observed)
    way_out = _restart(pool) if can_restart else f"delete RayCluster {pool.cluster} to restart it"
    if pool.spec.image is None and images.default != images.offered_default:
        return Explanation(
            Reason.OLD_IMAGE,
            f"the cluster runs {images.default}, the default is now {images.offered_default}: {way_out}, which ends "
            "its ranks",
        )
    if images.library != images.offered_library:
        return Explanation(
            Reason.OLD_LIBRARY,
            f"the cluster has the library of {images.library}, the operator is now {images.offered_library}: "
            f"{way_out}, which ends its ranks",
        )
    return None


def _restart(pool: ResourcePool) -> str:
    return pool.in_namespace(f"workergroups restart pool/{pool.name}")


def restart_of(group: WorkerGroup) -> str:
    """Return the command that recreates the ranks of a group."""
    return group.in_namespace(f"workergroups restart {group.name}")


def _shrinking(pool: ResourcePool, inputs: StatusInputs) -> Explanation | None:
    """Explain what keeps the pool from having as few nodes as its spec asks for; None if nothing does."""
    size, pods = inputs.decisions.sizes[pool.name], inputs.decisions.replicas[pool.name]
    kept = max(size.nodes, pods.count)
    # A pod that is replaced leaves too, while the pool has its size.
    if kept <= pool.spec.nodes and not (pods.leaving and _has_surplus(pool, inputs)):
        return None
    what = f"spec.nodes is {pool.spec.nodes}, the pool has {kept} nodes"
    if not size.victims:
        waits = f"{what}: waiting until the bundles of the others are released and their pods are gone"
        return Explanation(Reason.SHRINKING, waits)
    held = ", ".join(f"{victim.group} (nodes {victim.nodes})" for victim in size.victims)
    return Explanation(
        Reason.SHRINKING,
        f"{what}, since groups run on the others: {held}; a group on the whole pool leaves them with workergroups "
        "restart GROUP, or by itself with spec.resize: Follow; delete the others, or raise spec.nodes again",
    )


def _has_surplus(pool: ResourcePool, inputs: StatusInputs) -> bool:
    return len(inputs.observed.pods_of(Component.WORKER, node_group_of(pool))) > pool.spec.nodes


def _waits(pool: ResourcePool, inputs: StatusInputs) -> str | None:
    """Return what was asked of a pool since its RayCluster was admitted; None if it runs as it should."""
    observed, live = inputs.observed, inputs.observed.ray_cluster or {}
    for field in ("labels", "annotations"):
        present = live["metadata"].get(field) or {}
        for key, value in sorted(passed_on(observed.pools[0].metadata, field).items()):
            if present.get(key) != value:
                return f"{key}={value} waits"
    group = observed.live_node_group(node_group_of(pool))
    if group is None:
        return "the pool waits"
    if group.get("replicas") != inputs.decisions.replicas[pool.name].count:
        return f"spec.nodes: {pool.spec.nodes} waits, {group.get('replicas')} were admitted"
    if _is_other_admitted(pool, inputs):
        return "the change of the pods' template waits"
    if asked_roll(pool.metadata, last_roll(observed, pool)) is not None:
        return "the restart is pending"
    wanted = {node_group_of(each) for each in observed.pools} | kept_node_groups(observed)
    admitted = [str(each["groupName"]) for each in live["spec"]["workerGroupSpecs"]]
    gone = next((name for name in admitted if name not in wanted), None)
    return None if gone is None else f"the pods of a deleted pool, {gone}, still run"


def _is_other_admitted(pool: ResourcePool, inputs: StatusInputs) -> bool:
    """Return whether the spec asks for other pods than were admitted; for another head, too, if the pool shapes it."""
    templates, nodes = inputs.templates, admitted_nodes(inputs.observed, pool)
    if nodes is None or not _is_same(nodes, templates.asked_of(pool)):
        return True
    head = admitted_head(inputs.observed)
    return head is not None and digest_of(head) is not None and _is_head_old(pool, templates.asked_head, head)


def group_up_to_date(group: WorkerGroup, inputs: StatusInputs) -> Finding:
    """Find out whether the ranks were made from the present spec and code. Another spec ends that a run has ended."""
    if group.name in inputs.decisions.groups.finished:
        return _true()
    incarnation = inputs.decisions.groups.incarnations.get(group.name)
    if incarnation is None or incarnation.revision is None:
        return _finding("Unknown", Reason.NOT_LAUNCHED, "nothing has been launched yet")
    if inputs.observed.launch_revisions[group.name] is None:
        missing = f"there is no ConfigMap {group.spec.code_config_map}: create it"
        return _finding("Unknown", Reason.CODE_MISSING, f"{missing}; ranks that run keep running as they were launched")
    environment = inputs.decisions.groups.environments.get(group.name)
    if isinstance(environment, Explanation):
        message = f"{environment.message}; ranks that run keep the variables that they began with"
        return _finding("Unknown", Reason.ENVIRONMENT_MISSING, message)
    if environment is not None and incarnation.environment not in (None, environment.digest):
        message = (
            f"incarnation {incarnation.number} began with other values of the variables that spec.env and "
            "spec.envFrom take from Secrets and ConfigMaps: recreate the ranks with: " + restart_of(group)
        )
        return _finding("False", Reason.OLD_ENVIRONMENT, message)
    if (other_size := _other_size(group, inputs)) is not None:
        return _finding("False", Reason.OLD_SIZE, other_size)
    report = group.status.ranks or GroupReport()
    if report.incarnation != incarnation.number:
        message = f"the agent has not reported incarnation {incarnation.number} yet"
        return _finding("False", Reason.OLD_INCARNATION, message)
    return _true()


def _other_size(group: WorkerGroup, inputs: StatusInputs) -> str | None:
    """Return which pool, of those that the group uses as a whole, has another size than the group; None if none has."""
    pools = {pool.name: pool for pool in inputs.observed.pools}
    bundles = inputs.decisions.groups.incarnations[group.name].bundles
    for ref, part in zip(group.pools, bundles, strict=True):
        pool = pools[part.pool]
        per_node = pool.spec.processes_per_node
        if ref.bundles is not None or part.count == pool.world_size:
            continue
        what = f"spec.nodes of pool {pool.name} is {pool.spec.nodes}, and the ranks run on {part.count // per_node}"
        if group.spec.resize is Resize.FOLLOW:
            return f"{what}: the ranks are recreated when the bundles of all nodes are reserved"
        return f"{what}: recreate them, as soon as the bundles of all nodes are reserved, with: {restart_of(group)}"
    return None


def missing_environment(group: WorkerGroup, inputs: StatusInputs) -> Explanation | None:
    """Return why the group's incarnation cannot begin without what its Secrets and ConfigMaps lack; None if it can."""
    incarnation = inputs.decisions.groups.incarnations.get(group.name)
    environment = inputs.decisions.groups.environments.get(group.name)
    is_known = incarnation is None or incarnation.environment is not None
    return environment if isinstance(environment, Explanation) and not is_known else None


def _true() -> Finding:
    return _finding("True", Reason.UP_TO_DATE, "")


def _finding(status: ConditionStatus, reason: str, message: str) -> Finding:
    return Finding(type=ConditionType.UP_TO_DATE, status=status, reason=reason, message=message)
