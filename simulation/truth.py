"""What a status claims, compared with the truth of the simulated world."""

from simulation.ray import Gcs
from simulation.scene import condition
from simulation.world import World
from workergroups_api import launch
from workergroups_api.manifest import WORKER_GROUP, Manifest
from workergroups_api.names import node_group
from workergroups_api.worker_group import WorkerGroup


def contradiction(world: World, body: Manifest, cluster: str | None) -> str | None:
    """Why an object's Ready=True is not so; None if it is so, or is not claimed."""
    if condition(body).get("status") != "True" or "deletionTimestamp" in body["metadata"]:
        return None
    if cluster in world.lying:
        return None  # Whoever has a cluster's Ray can lie about this cluster; about others, nobody can.
    gcs = world.gcs.get(cluster) if cluster else None
    if gcs is None:
        return "Ray's head is gone"
    if world.machines.pods.get(gcs.head_uid, {"metadata": {"deletionTimestamp": 1}})["metadata"].get(
        "deletionTimestamp"
    ):
        return "the head's pod is being deleted"
    if cluster in world.frozen:
        return "the executor or the GCS does not answer"
    is_group = body["kind"] == WORKER_GROUP.kind
    session = (body["status"] if is_group else body["status"].get("reservation", {})).get("session")
    if session != gcs.session:
        return f"the status is of session {session}, the world is in {gcs.session}"
    return _of_group(world, gcs, body) if is_group else _of_pool(world, gcs, body)


def _of_group(world: World, gcs: Gcs, body: Manifest) -> str | None:
    status, uid = body["status"], body["metadata"]["uid"]
    ranks = gcs.ranks_of(uid, status.get("incarnation"))
    alive = {number for number, rank in ranks.items() if rank.state == "ALIVE"}
    missing = set(range(status.get("worldSize") or 1)) - alive
    if missing:
        return f"ranks {sorted(missing)} of incarnation {status.get('incarnation')} are not alive"
    leaving = {rank.pod for rank in ranks.values()} & _leaving(world)
    return f"pods {sorted(leaving)} of its ranks are being deleted" if leaving else None


def _of_pool(world: World, gcs: Gcs, body: Manifest) -> str | None:
    spec, metadata = body["spec"], body["metadata"]
    name = node_group(metadata["name"], metadata["uid"])
    nodes = {node.id: node for node in gcs.nodes.values() if node.node_group == name}
    if len(nodes) != spec["nodes"]:
        return f"{len(nodes)} of {spec['nodes']} nodes are in Ray"
    placed = {
        placement.name.index
        for placement in gcs.placements.values()
        if placement.name.uid == metadata["uid"] and placement.node_id in nodes
    }
    if len(placed) != spec["nodes"]:
        return f"{len(placed)} of {spec['nodes']} nodes are reserved"
    leaving = {node.pod for node in nodes.values()} & _leaving(world)
    return f"pods {sorted(leaving)} are being deleted" if leaving else None


def _leaving(world: World) -> set[str]:
    """Names of pods that are being deleted."""
    return {pod["metadata"]["name"] for pod in world.machines.pods.values() if "deletionTimestamp" in pod["metadata"]}


def outdated(world: World, body: Manifest, cluster: str | None, code: dict[str, str] | None) -> str | None:
    """Why a group's claim to run what is written is not so."""
    if condition(body).get("status") != "True" or condition(body, "UpToDate").get("status") != "True":
        return None
    gcs = world.gcs.get(cluster) if cluster else None
    if gcs is None or cluster in world.lying:
        return None
    group = WorkerGroup.model_validate({key: value for key, value in body.items() if key != "status"})
    digest = None if code is None else launch.code_digest(code)
    wanted = launch.revision(group.launch, digest)
    ranks = gcs.ranks_of(group.uid, body["status"].get("incarnation")).values()
    old = [rank.name.rank for rank in ranks if rank.revision != wanted]
    return f"ranks {old} are made from something else than what is written" if old and wanted else None
