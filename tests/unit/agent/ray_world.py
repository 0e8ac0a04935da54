"""Builders of plans and of Ray's state."""

from workergroups.naming import RankName
from workergroups_agent.executor.placement_name import PlacementName
from workergroups_agent.executor.ray_state import Death, Placement, Rank, RayNode, RayState
from workergroups_api.plan import ClusterPlan, PlannedGroup, PlannedNode, PlannedPool, PlannedSeats

NODES = {
    node.id: node
    for node in (
        RayNode("n-head", "p-head", "headgroup"),
        RayNode("n-agent", "p-agent", None),
        RayNode("n-c", "p-worker-c", "p-x2"),
        RayNode("n-b", "p-worker-b", "p-x2"),
        RayNode("n-single", "p-worker-a", "p-x1"),
    )
}


def pool(nodes=(2,)):
    planned = tuple(PlannedNode(node_group=f"p-x{processes}", processes=processes) for processes in nodes)
    return PlannedPool(
        name="p",
        uid="uid-p",
        generation=3,
        vendor="nvidia",
        nodes=planned,
        bundle={"CPU": 10.0, "GPU": 1.0},
        max_colocate_count=10,
    )


def group(start=0, count=4):
    return PlannedGroup(
        name="g",
        uid="uid-g",
        generation=2,
        incarnation=1,
        seats=(PlannedSeats(pool="p", start=start, count=count),),
        class_path="train.Trainer",
    )


def plan(pool_, *groups):
    return ClusterPlan(cluster="p", pools=(pool_,), groups=groups)


def placement(index=0, node="n-b", uid="uid-p", state="CREATED", scheduling_state="FINISHED"):
    return Placement(PlacementName("p", uid, index, node), state, scheduling_state)


def rank(number=0, state="ALIVE", death=None, node="n-b", name=None):
    if state == "DEAD" and death is None:
        death = Death("ProcessDied", "killed by signal 9")
    return Rank(name or RankName("g", "uid-g", 1, number, 4), state, node, death)


def state(*placements, ranks=()):
    hosts = {node.id: node.host for node in NODES.values()} | {"n-gone": "p-worker-gone"}
    return RayState(NODES, placements, tuple(ranks), hosts)
