"""What a user wants in a history: pools, groups and code, and how they change. The seed makes every choice."""

import random
from dataclasses import dataclass, field
from typing import Any

from tests.simulation.machines import BROKEN_IMAGE, NO_SUCH_NODE, UNFIT_IMAGE
from tests.simulation.nodes import RACK

IMAGES = (None, "example.test/worker:other")
SHAPED_ENV = "SHAPED"
FAILING_CLASS = "train.Failing"
MISSING_CLASS = "train.Missing"
FAILURE = 'RuntimeError: \N{COLLISION SYMBOL} "no"\x00\ud83d ' + "x" * 5000
CLASSES = ("train.Trainer", "train.Critic")
ROLES = ("actor", "critic")
RUN: dict[str, Any] = {"method": "train"}
# Templates of pods that cannot be created, and a word that the status must contain.
BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "account": ({"spec": {"serviceAccountName": "nobody"}}, "nobody"),
    "quantity": (
        {"spec": {"containers": [{"name": "ray-worker", "resources": {"limits": {"memory": "x"}}}]}},
        "quantities",
    ),
    "field": ({"spec": {"containers": [{"name": "ray-worker", "comand": ["x"]}]}}, "comand"),
    "image": ({"spec": {"containers": [{"name": "ray-worker", "image": f"{BROKEN_IMAGE}:1"}]}}, "pull"),
    "unfit": ({"spec": {"containers": [{"name": "ray-worker", "image": f"{UNFIT_IMAGE}:1"}]}}, "2.9.3"),
    "nowhere": ({"spec": {"nodeSelector": {NO_SUCH_NODE: "yes"}}}, "affinity"),
}
# Failure policies; with few and short pauses, since a history must come to its end.
POLICIES: tuple[dict[str, Any], ...] = (
    {"restart": "Never"},
    {"backoffSeconds": 1},
    {"restart": "Rank", "backoffSeconds": 1},
    {"backoffSeconds": 0, "maxRestarts": 1, "unlimitedFor": []},
)
HEALTHY: tuple[dict[str, Any], ...] = (
    {},
    {"metadata": {"annotations": {"team": "a"}}},
    {"metadata": {"labels": {"team": "b"}}},
)


@dataclass
class Plot:
    """What a user has written about an object."""

    spec: dict[str, Any]

    @property
    def is_suspended(self) -> bool:
        """Whether the user has suspended it."""
        return bool(self.spec.get("suspend"))


@dataclass
class PoolPlot(Plot):
    """What a user has written about a pool."""

    broken: str | None = None


@dataclass
class GroupPlot(Plot):
    """What a user has written about a group."""

    # The names of its pools.
    pools: tuple[str, ...]

    @property
    def failing(self) -> str | None:
        """The first of its classes that gives no rank: it raises, or does not exist."""
        workers = self.spec.get("roles") or [self.spec["worker"]]
        classes = [worker["class"] for worker in workers]
        return next((class_ for class_ in classes if class_ in (FAILING_CLASS, MISSING_CLASS)), None)


@dataclass
class Story:
    """The names that a history uses, and which objects have them now."""

    choices: random.Random
    clusters: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, tuple[int, int]] = field(default_factory=dict)
    group_pools: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    pools: dict[str, PoolPlot] = field(default_factory=dict)
    groups: dict[str, GroupPlot] = field(default_factory=dict)
    code: dict[str, int] = field(default_factory=dict)

    @classmethod
    def draw(cls, choices: random.Random) -> "Story":
        """Draw the names, which of them share a cluster, and what each object looks like when it exists."""
        story = cls(choices)
        clusters = [f"c{number}" for number in range(choices.randint(1, 3))]
        for number in range(choices.randint(1, 4)):
            story.clusters[f"p{number}"] = choices.choice(clusters)
            story.sizes[f"p{number}"] = choices.randint(1, 2), choices.randint(1, 2)
        for number in range(choices.randint(0, 4)):
            story.group_pools[f"g{number}"] = story._draw_bundles()
        return story

    def _draw_bundles(self) -> list[dict[str, Any]]:
        first = self.choices.choice(sorted(self.clusters))
        others = [name for name in self.clusters if name != first and self.clusters[name] == self.clusters[first]]
        names = [first, *(self.choices.sample(others, 1) if others and self.choices.random() < 0.4 else [])]
        refs: list[dict[str, Any]] = [{"name": name} for name in names]
        nodes, processes = self.sizes[first]
        if self.choices.random() < 0.3:
            refs[0]["bundles"] = {"start": 0, "count": self.choices.randint(1, nodes * processes)}
        return refs

    def new_pool(self, name: str) -> dict[str, Any]:
        """Return the spec of a pool that is created now."""
        nodes, processes = self.sizes[name]
        spec: dict[str, Any] = {"nodes": nodes, "processesPerNode": processes, "clusterName": self.clusters[name]}
        image = self.choices.choice(IMAGES)
        if image:
            spec |= {"image": image}
        if self.choices.random() < 0.3:
            spec["updateStrategy"] = {"type": "RollingUpdate"}
        if self.choices.random() < 0.3:
            spec["preflight"] = "Basic"
        if self.choices.random() < 0.3:
            spec["topology"] = {"key": RACK}
        template, broken = self.template()
        if template:
            spec["podTemplate"] = template
        self.pools[name] = PoolPlot(spec, broken)
        return spec

    def shape(self) -> dict[str, Any]:
        """Return another value of a field that only shapes pods; None removes it."""
        env = [{"name": SHAPED_ENV, "value": str(self.choices.randint(1, 3))}]
        resources = {"requests": {"cpu": str(self.choices.randint(1, 3))}}
        values = {"image": self.choices.choice(IMAGES), "env": env, "resources": resources}
        field = self.choices.choice(sorted(values))
        return {field: values[field]}

    def template(self) -> tuple[dict[str, Any], str | None]:
        """Return a pod template, and what is broken in it."""
        if self.choices.random() < 0.2:
            broken = self.choices.choice(sorted(BROKEN))
            return BROKEN[broken][0], broken
        return self.choices.choice(HEALTHY), None

    def new_group(self, name: str) -> dict[str, Any]:
        """Return the spec of a group that is created now."""
        policy = self.choices.choice(POLICIES)
        may_run = policy.get("restart") != "Rank" and self.choices.random() < 0.4
        spec: dict[str, Any] = {"pools": self.group_pools[name], "failurePolicy": policy, **self.ranks(not may_run)}
        if may_run:
            spec["run"] = RUN
        if self.choices.random() < 0.4:
            spec["code"] = {"configMap": {"name": self.choice_of_code()}}
        if self.choices.random() < 0.5 and any("bundles" not in ref for ref in spec["pools"]):
            spec["resize"] = "Follow"
        self.groups[name] = GroupPlot(spec, tuple(ref["name"] for ref in self.group_pools[name]))
        return spec

    def ranks(self, may_have_roles: bool) -> dict[str, Any]:
        """Return the class of the ranks, or their roles."""
        if not may_have_roles or self.choices.random() < 0.75:
            return {"worker": self._worker()}
        return {"roles": [{"name": name, **self._worker()} for name in ROLES[: self.choices.randint(1, 2)]]}

    def _worker(self) -> dict[str, Any]:
        """Return a class and its arguments."""
        chance = self.choices.random()
        class_ = FAILING_CLASS if chance < 0.07 else MISSING_CLASS if chance < 0.12 else self.choices.choice(CLASSES)
        return {"class": class_, "args": [None], "kwargs": {"lr": self.choices.randint(1, 5), "none": None}}

    def choice_of_code(self) -> str:
        """Return one of two names; the ConfigMap may not exist."""
        return self.choices.choice(("code-a", "code-b"))
