"""Compare what a status claims with the truth of the simulated world."""

from tests.simulation.ray import Gcs
from tests.simulation.story import SHAPED_ENV
from tests.simulation.world import World, is_foreign
from workergroups_api import launch
from workergroups_api.conditions import Condition, find
from workergroups_api.names import node_group
from workergroups_api.resource_pool import ResourcePool
from workergroups_api.vocabulary import SUSPENDED, UNTIMED, Component, ConditionType, Container, Preflight, Reason
from workergroups_api.worker_group import WorkerGroup


def condition_of(subject: ResourcePool | WorkerGroup, type_: ConditionType = ConditionType.READY) -> Condition | None:
    """Return a condition of the object's status; None while it is absent."""
    return find(subject.status.conditions, type_)


def says_true(subject: ResourcePool | WorkerGroup, type_: ConditionType = ConditionType.READY) -> bool:
    """Whether the object's status claims this condition."""
    found = condition_of(subject, type_)
    return found is not None and found.status == "True"


def is_complete(group: WorkerGroup) -> bool:
    """Whether the group claims that the method that it runs has returned on all ranks."""
    ready = condition_of(group)
    return ready is not None and ready.reason == Reason.COMPLETE


def misjudged(subject: ResourcePool | WorkerGroup) -> str | None:
    """Why what an object's status says of its progress contradicts `Ready` or the deadline; None if it does not."""
    ready, progress = condition_of(subject), condition_of(subject, ConditionType.PROGRESSING)
    if ready is None or progress is None:
        return None if ready is progress else f"it has Ready {ready}, Progressing {progress}"
    said, deadline = (progress.status, progress.reason), subject.status.deadline
    expected: list[tuple[str, str]]
    if ready.status == "True":
        expected = [("True", Reason.BECAME_READY)] if deadline is None else []
    elif deadline is None:
        expected = [("False", ready.reason), ("Unknown", ready.reason)]
    else:
        expected = [("True", Reason.WAITING_FOR_READY), ("False", Reason.PROGRESS_DEADLINE_EXCEEDED)]
    failed = condition_of(subject, ConditionType.FAILED)
    is_final = ready.status == "False" and deadline is None and ready.reason not in (*UNTIMED, *SUSPENDED)
    if failed is None or (failed.status == "True") != is_final:
        return f"it says {ready} with the deadline {deadline}, and {failed}"
    return None if said in expected else f"it says {ready} and {progress}, and its deadline is {deadline}"


def contradiction(world: World, subject: ResourcePool | WorkerGroup, cluster: str | None) -> str | None:
    """Return why an object's Ready=True is wrong; None if it is right, or if Ready is not True."""
    if not says_true(subject) or "deletionTimestamp" in subject.metadata:
        return None
    if cluster in world.lying:
        return None  # A user who controls a cluster's Ray can falsify this cluster's statuses, but no others.
    if isinstance(subject, WorkerGroup) and is_complete(subject):
        run = subject.uid, subject.status.incarnation
        return None if run in world.returned else f"the method of incarnation {run[1]} has not returned on all ranks"
    gcs = world.gcs.get(cluster) if cluster else None
    if gcs is None:
        return "Ray's head is gone"
    if world.machines.pods.get(gcs.head_uid, {"metadata": {"deletionTimestamp": 1}})["metadata"].get(
        "deletionTimestamp"
    ):
        return "the head's pod is being deleted"
    if cluster in world.frozen:
        return "the executor or the GCS does not answer"
    session = _session(subject)
    if session != gcs.session:
        return f"the status is of session {session}, the world is in {gcs.session}"
    return _of_group(world, gcs, subject) if isinstance(subject, WorkerGroup) else _of_pool(world, gcs, subject)


def suspended_wrongly(world: World, subject: ResourcePool | WorkerGroup, cluster: str | None) -> str | None:
    """Return why an object's Suspended=True is wrong: something of it is left."""
    if not subject.spec.suspend or not says_true(subject, ConditionType.SUSPENDED) or cluster in world.lying:
        return None
    if isinstance(subject, ResourcePool):
        name = node_group(subject.name, subject.uid)
        pods = [pod for pod in world.machines.pods.values() if not is_foreign(pod)]
        left = [pod for pod in pods if pod["metadata"].get("labels", {}).get("ray.io/group") == name]
        return f"{len(left)} pods of it are left" if left else None
    gcs = world.gcs.get(cluster) if cluster else None
    ranks = [rank for rank in gcs.ranks_of(subject.uid).values() if rank.is_alive] if gcs else []
    return f"{len(ranks)} ranks of it are left" if ranks else None


def _session(subject: ResourcePool | WorkerGroup) -> str | None:
    """Return the Ray session that a status is about."""
    if isinstance(subject, WorkerGroup):
        return subject.status.session
    return subject.status.reservation.session if subject.status.reservation else None


def _of_group(world: World, gcs: Gcs, group: WorkerGroup) -> str | None:
    incarnation = group.status.incarnation
    ranks = gcs.ranks_of(group.uid, incarnation)
    alive = {number for number, rank in ranks.items() if rank.state == "ALIVE" and not gcs.has_raised(rank)}
    missing = set(range(group.status.world_size or 1)) - alive
    if missing:
        return f"ranks {sorted(missing)} of incarnation {incarnation} are not alive"
    leaving = {rank.pod for rank in ranks.values()} & _leaving(world)
    return f"pods {sorted(leaving)} of its ranks are being deleted" if leaving else None


def _of_pool(world: World, gcs: Gcs, pool: ResourcePool) -> str | None:
    wanted = pool.spec.nodes
    name = node_group(pool.name, pool.uid)
    nodes = {node.id: node for node in gcs.nodes.values() if node.node_group == name}
    # Nodes with higher numbers may be leaving.
    placed = {
        placement.name.index: nodes[placement.node_id]
        for placement in gcs.placements.values()
        if placement.name.uid == pool.uid and placement.node_id in nodes and placement.name.index < wanted
    }
    if len(placed) != wanted:
        return f"{len(placed)} of {wanted} nodes are reserved, {len(nodes)} are in Ray"
    preflight = gcs.preflights.get(pool.uid)
    unchecked = {node.pod for node in placed.values() if preflight is None or node.id not in preflight.passed}
    if unchecked and pool.spec.preflight is not Preflight.NONE:
        return f"{len(unchecked)} of its nodes have not passed the preflight: {sorted(unchecked)}"
    leaving = {node.pod for node in placed.values()} & _leaving(world)
    return f"pods {sorted(leaving)} are being deleted" if leaving else None


def _leaving(world: World) -> set[str]:
    """Return the names of the pods that are being deleted."""
    return {pod["metadata"]["name"] for pod in world.machines.pods.values() if "deletionTimestamp" in pod["metadata"]}


def old_pods(world: World, pool: ResourcePool) -> str | None:
    """Return why a pool's UpToDate=True is wrong."""
    if not says_true(pool, ConditionType.UP_TO_DATE) or "deletionTimestamp" in pool.metadata:
        return None
    written = {variable.name: variable.value for variable in pool.spec.env}.get(SHAPED_ENV)
    for pod in world.pods(pool.cluster, Component.WORKER):
        if pod["metadata"]["labels"].get("ray.io/group") != node_group(pool.name, pool.uid):
            continue
        container = next(each for each in pod["spec"]["containers"] if each["name"] == Container.WORKER)
        has = {each["name"]: each.get("value") for each in container["env"]}.get(SHAPED_ENV)
        cpu = container["resources"]["requests"]["cpu"]
        if (has, cpu) != (written, pool.spec.resources.requests.get("cpu", "100m")):
            return f"pod {pod['metadata']['name']} has {SHAPED_ENV}={has} and {cpu} CPUs, not what the spec says"
        image = pool.spec.image
        if image and not pool.spec.pod_template and container["image"] != image:
            return f"pod {pod['metadata']['name']} runs {container['image']}, and the spec says {image}"
    return None


def outdated(world: World, group: WorkerGroup, cluster: str | None, code: dict[str, str] | None) -> str | None:
    """Return why a group's UpToDate=True is wrong."""
    if not says_true(group) or not says_true(group, ConditionType.UP_TO_DATE) or is_complete(group):
        return None
    gcs = world.gcs.get(cluster) if cluster else None
    if gcs is None or cluster in world.lying:
        return None
    digest = None if code is None else launch.code_digest(code)
    wanted = launch.revision(group.launch, digest)
    ranks = gcs.ranks_of(group.uid, group.status.incarnation).values()
    old = [rank.name.rank for rank in ranks if rank.revision != wanted]
    return f"ranks {old} are made from something else than what is written" if old and wanted else None
