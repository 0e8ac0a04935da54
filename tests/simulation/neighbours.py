"""Strangers' large and odd objects next to those of a history: created, edited and deleted at random."""

import random
from collections.abc import Callable

from tests.fuzz.objects import LARGE_ANNOTATIONS, most_status, pod_like_ours
from tests.fuzz.values import MAX_BYTES, as_json
from tests.simulation.api import MERGE, ApiError, eventually, path_of
from tests.simulation.scene import Scene, group, pool
from tests.simulation.story import BROKEN, Story
from workergroups_api.manifest import LEASE, RESOURCE_POOL, WORKER_GROUP, Kind, Manifest, kind_of
from workergroups_api.names import CLUSTER_LABEL, DOUBTS_ANNOTATION, agent_name
from workergroups_api.plan import MAX_PARTS, MAX_POOL_NODES

# How many of a history's actions a stranger's action precedes, and the most objects. They cost the time of some hundred
# kilobytes for each write, in all programs of the simulation.
CHANCE = 0.5
MOST = 4
# What the API server takes in the annotations of one object, less what some of them may have already.
MAX_ANNOTATIONS = 120_000
# The names that strangers use.
PREFIX = "odd-"
GONE_SECONDS = 60.0
_Named = tuple[Kind, str, str]


class Neighbours:
    """The strangers of one history; half of their objects are in its namespace, the others in `elsewhere`."""

    def __init__(self, scene: Scene, story: Story, elsewhere: str, seed: int, share: float) -> None:
        """`share` is the part of histories that have strangers."""
        self.scene = scene
        self.story = story
        self.namespaces = scene.namespace, elsewhere
        self.choices = random.Random(f"{seed} neighbours")
        self.come = self.choices.random() < share
        # How often strangers did what.
        self.seen: dict[str, int] = {}
        self._created = 0
        self._present: list[_Named] = []

    async def act(self) -> str | None:
        """Let a stranger create, edit or delete an object, or do nothing; return what it did."""
        if not self.come or self.choices.random() > CHANCE:
            return None
        actions = [*([self._create] * 2 if len(self._present) < MOST else []), *([self._edit] * 2), self._delete]
        action = self.choices.choice(actions if self._present else [self._create])
        try:
            said = await action()
        except ApiError as error:  # Too large together with what exists, or the object is being deleted.
            said = f"a stranger's write is rejected with {error.status}"
        self.seen[said] = self.seen.get(said, 0) + 1
        return said

    async def leave(self) -> None:
        """Delete everything that strangers have created, and wait until it is gone."""
        for kind, namespace, name in self._present:
            await self.scene.api.delete(kind, namespace, name, grace=0)
        await eventually("the strangers' objects are gone", self._are_gone, GONE_SECONDS)

    async def _are_gone(self) -> bool:
        return not [named for named in self._present if await self.scene.api.get(*named) is not None]

    async def _create(self) -> str:
        draw: Callable[[str, str], Manifest] = self.choices.choice((self._pool, self._group, self._pod, self._lease))
        self._created += 1
        body = draw(self.choices.choice(self.namespaces), f"{PREFIX}{self._created}")
        metadata, kind = body["metadata"], kind_of(body)
        await self.scene.api.send("POST", path_of(kind, metadata["namespace"]), as_json(body))
        self._present.append((kind, metadata["namespace"], metadata["name"]))
        return f"a stranger creates a {kind.kind}"

    async def _edit(self) -> str:
        kind, namespace, name = self.choices.choice(self._present)
        if kind in (RESOURCE_POOL, WORKER_GROUP) and self.choices.random() < 0.6:
            status = as_json(most_status(kind, self.choices))
            await self.scene.api.send("PATCH", path_of(kind, namespace, name, "status"), status, MERGE)
            return f"a stranger writes the status of a {kind.kind}"
        edit = as_json({"metadata": {"annotations": self._annotations()}})
        await self.scene.api.send("PATCH", path_of(kind, namespace, name), edit, MERGE)
        return f"a stranger annotates a {kind.kind}"

    async def _delete(self) -> str:
        kind, namespace, name = self.choices.choice(self._present)
        await self.scene.api.delete(kind, namespace, name)
        if await self.scene.api.get(kind, namespace, name) is None:
            self._present.remove((kind, namespace, name))
        return f"a stranger deletes a {kind.kind}"

    def _cluster(self) -> str:
        """Return a cluster of the history, or one of strangers."""
        return self.choices.choice((*sorted(set(self.story.clusters.values())), f"{PREFIX}cluster"))

    def _annotations(self) -> dict[str, str]:
        name = self.choices.choice((*LARGE_ANNOTATIONS, DOUBTS_ANNOTATION))
        return {name: self._large(MAX_ANNOTATIONS)}

    def _large(self, most: int) -> str:
        """Return a text of up to `most` bytes: the API server needs seconds for as many values."""
        character = self.choices.choice(("x", "<", "\u20ac"))
        return character * (self.choices.choice((5_000, 50_000, most)) // len(character.encode()))

    # What strangers create. None of their pools gets a node.

    def _pool(self, namespace: str, name: str) -> Manifest:
        no_nodes = self.choices.choice(({"suspend": True}, {"podTemplate": BROKEN["account"][0]}))
        return self._annotated(pool(namespace, name, clusterName=self._cluster(), nodes=MAX_POOL_NODES, **no_nodes))

    def _group(self, namespace: str, name: str) -> Manifest:
        names = [*self.story.clusters, *(f"{PREFIX}{number}" for number in range(1, self._created))]
        pools = [{"name": self.choices.choice(names)} for _ in range(self.choices.choice((1, MAX_PARTS)))]
        worker = {"class": "train.Trainer", "kwargs": {"large": self._large(MAX_BYTES)}}
        return self._annotated(group(namespace, name, worker=worker, pools=pools))

    def _pod(self, namespace: str, name: str) -> Manifest:
        return pod_like_ours(self.choices, namespace, name, self._cluster())

    def _lease(self, namespace: str, name: str) -> Manifest:
        """Return one with the label of a cluster; it may have the name that the Lease of strangers' own cluster has."""
        cluster = self._cluster()
        is_own = cluster not in self.story.clusters.values()
        metadata = {"name": agent_name(cluster) if is_own else name, "namespace": namespace}
        spec = {"holderIdentity": "a stranger", "renewTime": "2026-11-23T00:00:00.000000Z"}
        lease = {"apiVersion": LEASE.api_version, "kind": LEASE.kind, "metadata": metadata, "spec": spec}
        return self._annotated(lease | {"metadata": metadata | {"labels": {CLUSTER_LABEL: cluster}}})

    def _annotated(self, body: Manifest) -> Manifest:
        """Return the object, half of the time with a large annotation."""
        annotations = self._annotations() if self.choices.random() < 0.5 else {}
        return body | {"metadata": body["metadata"] | {"annotations": annotations}}
