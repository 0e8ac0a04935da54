"""Edits, restarts and lost pods in any order, turn by turn, in a world of values: what a restart promises holds."""

import copy
import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.unit.operator.make import (
    HEAD,
    NODE_GROUP,
    SESSION,
    SETTINGS,
    built,
    child,
    decided,
    metadata,
    observed,
    of_kind,
    pod,
    reservation,
    statuses,
)
from workergroups_api.conditions import find
from workergroups_api.names import RESTARTED_AT_ANNOTATION, TOKEN_ANNOTATION
from workergroups_api.resource_pool import ResourcePool
from workergroups_operator.apply import changes
from workergroups_operator.desired import desired
from workergroups_operator.desired.token import FreshSecrets
from workergroups_operator.observed import AgentHeartbeat, Observed
from workergroups_operator.templates.stamp import digest_of

NODES = 3
EDITS: tuple[dict[str, Any], ...] = (
    {},
    {"env": [{"name": "A", "value": "1"}]},
    {"resources": {"requests": {"cpu": 2}}},
    {"image": "example.test/worker:2"},
    {"head": {"resources": {"requests": {"cpu": 2}}}},
)


@dataclass
class World:
    """One pool on a cluster whose KubeRay, kubelets and agent are these few lines."""

    choices: random.Random
    spec: dict[str, Any] = field(default_factory=dict)
    restarted: str | None = None
    status: dict[str, Any] = field(default_factory=dict)
    cluster: dict[tuple[str, str], Any] = field(default_factory=dict)
    head: Any = None
    nodes: dict[str, Any] = field(default_factory=dict)
    # Pods that the operator had deleted, and what is ready of the others.
    deleted: int = 0
    ready: set[str] = field(default_factory=set)
    made: int = 0

    @property
    def seen(self) -> Observed:
        annotations = {} if self.restarted is None else {RESTARTED_AT_ANNOTATION: self.restarted}
        body = metadata("actors", annotations=annotations)
        shape = {"nodes": NODES, "processesPerNode": 1}
        pool = ResourcePool.model_validate({"metadata": body, "spec": shape | self.spec, "status": self.status})
        heads = () if self.head is None else (self.head,)
        uid = None if self.head is None else f"{self.head['metadata']['uid']}/life-1"
        agent = AgentHeartbeat(session=SESSION, known=(uid or HEAD, SESSION), seen_with_head_seconds=10.0)
        return observed(pools=(pool,), pods=(*heads, *self.nodes.values()), children=self.cluster, agent=agent)

    def turn(self) -> None:
        """The operator's: RayCluster, head and status."""
        seen = self.seen
        templates, decisions = built(seen), decided(seen)
        manifests = desired(seen, templates, decisions, SETTINGS.network, fresh=FreshSecrets("t", "ab"))
        cluster = of_kind("RayCluster", manifests)
        due = changes(seen, decisions, ())
        noted = {key: value for key, value in cluster["metadata"]["annotations"].items() if key != TOKEN_ANNOTATION}
        about = cluster["metadata"] | {"annotations": noted, "uid": "uid"}
        self.cluster = child("RayCluster", "actors", metadata=about, spec=copy.deepcopy(cluster["spec"]))
        if due.delete is not None:
            assert due.delete["metadata"]["uid"] == self.head["metadata"]["uid"]
            self.head, self.deleted = None, self.deleted + 1
        self.status = statuses(seen).updates[-1].after.to_json() | {
            key: value for key, value in self.status.items() if key == "reservation"
        }

    def kuberay(self) -> None:
        spec = next(iter(self.cluster.values()))["spec"]
        (group,) = spec["workerGroupSpecs"]
        if self.head is None:
            self.head = self.create("head", spec["headGroupSpec"]["template"])
        present = len(self.nodes)
        for name in group.get("scaleStrategy", {}).get("workersToDelete", ()):
            if self.nodes.pop(name, None) is not None:
                self.deleted += 1
        assert present - len(self.nodes) <= 1, "the devices of one node at a time"
        while len(self.nodes) < NODES:
            node = self.create("worker", group["template"])
            self.nodes[node["metadata"]["name"]] = node

    def create(self, component: str, template: Any) -> Any:
        self.made += 1
        made = pod(component, f"{component}-{self.made}")
        made["metadata"]["annotations"] = dict(template["metadata"]["annotations"])
        made["spec"]["nodeName"] = "node"
        return made

    def kubelet(self) -> None:
        """One pod becomes ready; the agent notices another time."""
        waiting = sorted(self.nodes.keys() - self.ready)
        if waiting:
            name = self.choices.choice(waiting)
            self.ready.add(name)
            container = {"name": "ray-worker", "state": {"running": {}}, "restartCount": 0}
            conditions = [{"type": "Ready", "status": "True"}]
            self.nodes[name]["status"] |= {"conditions": conditions, "containerStatuses": [container]}

    def agent(self) -> None:
        joined = [name for name in self.nodes if name in self.ready]
        self.status |= reservation(*joined, plannedNodes=NODES)

    def settle(self) -> None:
        for _ in range(14):
            for step in (self.turn, self.kuberay, self.kubelet, self.agent):
                step()

    @property
    def digests(self) -> set[Any]:
        return {digest_of(each) for each in self.nodes.values()}


@pytest.mark.parametrize("seed", range(6))
def test_nothing_restarts_unless_asked_for_and_then_what_is_asked_for_runs(seed):
    choices = random.Random(seed)
    world = World(choices)
    world.settle()
    assert world.deleted == 0
    for number in range(choices.randint(1, 6)):
        deleted, runs = world.deleted, world.digests
        world.spec = choices.choice(EDITS)
        is_asked = choices.random() < 0.5
        if is_asked:
            world.restarted = f"{seed} {number}"
        for _ in range(choices.randint(0, 25)):
            choices.choice((world.turn, world.kuberay, world.kubelet, world.agent))()
        if not is_asked:
            world.settle()
            if choices.random() < 0.5:  # A lost node comes back as it was.
                world.nodes.pop(choices.choice(sorted(world.nodes)))
            world.settle()
            if number == 0:
                assert (world.deleted, world.digests) == (deleted, runs)
    world.restarted = "the last"
    world.settle()
    last = world.seen
    (pool,) = last.pools
    assert world.digests == {digest_of(built(last).asked_of(pool))}
    assert digest_of(world.head) == digest_of(built(last).asked_head)
    assert decided(last).rolls == {}
    assert find(pool.status.conditions, "UpToDate").status == "True"
    assert find(pool.status.conditions, "Ready").status == "True"
    assert len(world.nodes) == NODES
    assert built(last).workers.keys() == {NODE_GROUP}
