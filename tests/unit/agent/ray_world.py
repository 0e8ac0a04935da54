"""Builders of plans, of Ray's state and of what is known of launches."""

from dataclasses import replace

from workergroups.debugger.pauses import Pause
from workergroups.naming import PlacementName, RankName
from workergroups.ray_private.death import Death
from workergroups_agent.exchange import PreparedLaunch
from workergroups_agent.launch_state import Launches
from workergroups_agent.ray_state import JoinedNode, PlacementState, RankActor, RayState
from workergroups_agent.weights_reader import RecordedWeights
from workergroups_api.launch import Launch
from workergroups_api.plan import ClusterPlan, PlannedBundles, PlannedGroup, PlannedPool, PlannedPreflight
from workergroups_api.run import RunStatus

SESSION = "session-1"
NODES = {
    node.id: node
    for node in (
        JoinedNode("n-head", "p-head", "headgroup"),
        JoinedNode("n-agent", "p-agent", None),
        JoinedNode("n-c", "p-worker-c", "p-1"),
        JoinedNode("n-b", "p-worker-b", "p-1"),
        JoinedNode("n-other", "q-worker-a", "q-1"),
    )
}
KEY = ("uid-g", 1)


def pool(nodes=2, processes=2, devices=1, name="p", reserves=True, settled=0, preflight=None, domains=None):
    return PlannedPool(
        name=name,
        uid=f"uid-{name}",
        node_group=f"{name}-1",
        generation=7,
        nodes=nodes,
        settled=settled,
        processes_per_node=processes,
        bundle={"CPU": 10.0, "GPU": float(devices)} if devices else {"CPU": 10.0},
        vendor="nvidia",
        devices_per_process=devices,
        max_colocate_count=10,
        reserves=reserves,
        domains=domains,
        preflight=PlannedPreflight(level=preflight) if preflight else None,
    )


def group(*bundles, session=SESSION, incarnation=1, revision="r1", runs=False, births=None):
    return PlannedGroup(
        name="g",
        uid="uid-g",
        incarnation=incarnation,
        launch_revision=revision,
        session=session,
        run=RunStatus(revision="r") if runs else None,
        births=births,
        bundles=tuple(
            PlannedBundles(pool=name, start=start, count=count) for name, start, count in bundles or [("p", 0, 4)]
        ),
    )


def plan(*pools_and_groups):
    return ClusterPlan(
        cluster="p",
        pools=tuple(item for item in pools_and_groups if isinstance(item, PlannedPool)),
        groups=tuple(item for item in pools_and_groups if isinstance(item, PlannedGroup)),
    )


def placement(index=0, node="n-b", uid="uid-p", state="CREATED", scheduling_state="FINISHED", pool="p"):
    return PlacementState(PlacementName(pool, uid, index, node), state, scheduling_state)


RESERVED = (placement(index=0, node="n-b"), placement(index=1, node="n-c"))


def rank(number=0, state="ALIVE", death=None, node="n-b", name=None):
    if state == "DEAD" and death is None:
        death = Death("ProcessDied", "killed by signal 9", "")
    return RankActor(name or RankName("g", "uid-g", 1, number, 4), f"actor-{number}", state, node, death=death)


PAUSE = Pause(
    node_id="n-c",
    file="/code/train.py",
    line=12,
    function="Trainer.step",
    directory="/code",
    error="",
    port=5678,
    since=1e9,
)


def reborn(number, birth, state="ALIVE"):
    name = RankName("g", "uid-g", 1, number, 4, birth)
    return replace(rank(number, state, name=name), actor_id=f"actor-{number}-{birth}")


def ranks(*numbers, **more):
    return [rank(number, **more) for number in numbers]


def state(*placements, ranks=(), nodes=None, pauses=(), drivers=(), preflights=None, runs=None, weights=()):
    nodes = NODES if nodes is None else nodes
    pods = {node.id: node.pod for node in NODES.values()} | {"n-gone": "p-worker-gone"}
    paused = {f"actor-{number}": PAUSE for number in pauses}
    records = {f"actor-{number}": run for number, run in (runs or {}).items()}
    return RayState(
        SESSION,
        nodes,
        placements,
        tuple(ranks),
        pods,
        paused,
        tuple(drivers),
        preflights=preflights or {},
        runs=records,
        weights=RecordedWeights({f"actor-{number}": {} for number in weights}),
    )


PREPARED = PreparedLaunch(uid="uid-g", revision="r1", launch=Launch(class_path="train.Trainer"))


def launches(prepared=PREPARED, **more):
    return Launches(prepared={prepared.uid: prepared} if prepared else {}, **more)


class Store:
    """The key-value store of a GCS."""

    def __init__(self):
        self.values = {}

    def keys(self, namespace):
        return [key for space, key in self.values if space == namespace]

    def get(self, namespace, key):
        return self.values.get((namespace, key))

    def get_many(self, namespace, keys):
        return {key: self.values[namespace, key] for key in keys if (namespace, key) in self.values}

    def put(self, namespace, key, value):
        self.values[namespace, key] = value

    def delete(self, namespace, key):
        self.values.pop((namespace, key), None)
