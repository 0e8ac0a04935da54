"""What happens in a history, one action at a time: by users, by the world, and to our own processes."""

import random
from collections.abc import Awaitable, Callable, Mapping

from simulation.api import ApiError
from simulation.scene import Scene
from simulation.story import Story
from workergroups_api import manifest as kinds
from workergroups_api.manifest import RESOURCE_POOL, WORKER_GROUP, Kind
from workergroups_api.names import agent_name, plan_name, token_secret_name

Action = Callable[[], Awaitable[str | None]]
CHILDREN: dict[Kind, Callable[[str], str]] = {
    kinds.SECRET: token_secret_name,
    kinds.CONFIG_MAP: plan_name,
    kinds.SERVICE_ACCOUNT: agent_name,
    kinds.ROLE: agent_name,
    kinds.ROLE_BINDING: agent_name,
    kinds.LEASE: agent_name,
    kinds.DEPLOYMENT: agent_name,
    kinds.RAY_CLUSTER: lambda cluster: cluster,
}


class Actions:
    """Each returns what it did, None if there was nothing to do."""

    def __init__(
        self, scene: Scene, story: Story, choices: random.Random, restart: Callable[[bool], Awaitable[None]]
    ) -> None:
        self.scene = scene
        self.story = story
        self.choices = choices
        self._restart = restart

    def drawn(self) -> Action:
        """The next action."""
        weights: dict[Action, int] = {
            self.create_pool: 6,
            self.create_group: 7,
            self.delete_pool: 2,
            self.delete_group: 2,
            self.make_pool_again: 3,
            self.make_group_again: 2,
            self.edit_template: 3,
            self.edit_deadline: 2,
            self.edit_worker: 4,
            self.edit_env: 2,
            self.write_code: 4,
            self.kill_rank: 3,
            self.delete_worker: 3,
            self.delete_head: 2,
            self.restart_head: 1,
            self.delete_agent: 2,
            self.freeze: 1,
            self.delete_child: 4,
            self.edit_ray_cluster: 1,
            self.restart_reporter: 3,
            self.restart_operator: 5,
        }
        return self.choices.choices(list(weights), list(weights.values()))[0]

    async def create_pool(self) -> str | None:
        """A pool that is not there."""
        absent = sorted(self.story.clusters.keys() - self.story.pools.keys())
        if not absent:
            return None
        name = self.choices.choice(absent)
        spec = self.story.new_pool(name)
        await self.scene.pool(name, **spec)
        return f"create pool {name} {spec}"

    async def create_group(self) -> str | None:
        """A group that is not there."""
        absent = sorted(self.story.group_pools.keys() - self.story.groups.keys())
        if not absent:
            return None
        name = self.choices.choice(absent)
        spec = self.story.new_group(name)
        await self.scene.group(name, **spec)
        return f"create group {name} {spec}"

    async def delete_pool(self) -> str | None:
        """A pool goes."""
        name = self._one(self.story.pools)
        if name is None:
            return None
        del self.story.pools[name]
        await self.scene.delete(RESOURCE_POOL, name)
        return f"delete pool {name}"

    async def delete_group(self) -> str | None:
        """A group goes."""
        name = self._one(self.story.groups)
        if name is None:
            return None
        del self.story.groups[name]
        await self.scene.delete(WORKER_GROUP, name)
        return f"delete group {name}"

    async def make_pool_again(self) -> str | None:
        """A pool goes and another of its name comes at once."""
        name = self._one(self.story.pools)
        if name is None:
            return None
        await self.scene.delete(RESOURCE_POOL, name)
        spec = self.story.new_pool(name)
        await self.scene.pool(name, **spec)
        return f"delete and create pool {name} {spec}"

    async def make_group_again(self) -> str | None:
        """A group goes and another of its name comes at once."""
        name = self._one(self.story.groups)
        if name is None:
            return None
        await self.scene.delete(WORKER_GROUP, name)
        spec = self.story.new_group(name)
        await self.scene.group(name, **spec)
        return f"delete and create group {name} {spec}"

    async def edit_template(self) -> str | None:
        """Another pod template; what was in the old one and is not in it goes."""
        name = self._one(self.story.pools)
        if name is None:
            return None
        plot = self.story.pools[name]
        template, plot.broken = self.story.template()
        plot.spec.pop("podTemplate", None)
        await self.scene.edit(RESOURCE_POOL, name, {"podTemplate": None})
        if template:
            plot.spec["podTemplate"] = template
            await self.scene.edit(RESOURCE_POOL, name, {"podTemplate": template})
        return f"template of pool {name}: {template}"

    async def edit_deadline(self) -> str | None:
        """Another deadline, which is no reason for anything."""
        kind, plots = self.choices.choice(((RESOURCE_POOL, self.story.pools), (WORKER_GROUP, self.story.groups)))
        name = self._one(plots)
        if name is None:
            return None
        spec = {"progressDeadlineSeconds": self.choices.randint(100, 900)}
        plots[name].spec |= spec
        await self.scene.edit(kind, name, spec)
        return f"edit {kind.kind} {name} {spec}"

    async def edit_worker(self) -> str | None:
        """Another class or other arguments."""
        name = self._one(self.story.groups)
        if name is None:
            return None
        worker = self.story.worker()
        self.story.groups[name].spec["worker"] = worker
        await self.scene.edit(WORKER_GROUP, name, {"worker": worker})
        return f"worker of group {name}: {worker}"

    async def edit_env(self) -> str | None:
        """Other environment."""
        name = self._one(self.story.groups)
        if name is None:
            return None
        env = [{"name": "A", "value": str(self.choices.randint(1, 3))}]
        self.story.groups[name].spec["env"] = env
        await self.scene.edit(WORKER_GROUP, name, {"env": env})
        return f"env of group {name}: {env}"

    async def write_code(self) -> str | None:
        """A ConfigMap with code comes or changes."""
        name = self.story.choice_of_code()
        self.story.code[name] = self.choices.randint(1, 4)
        await self.scene.code(name, train=f"VERSION = {self.story.code[name]}")
        return f"code {name}: {self.story.code[name]}"

    async def kill_rank(self) -> str | None:
        """A rank's process dies."""
        cluster = self._cluster()
        ranks = sorted(self.scene.world.live_ranks(cluster), key=lambda rank: str(rank.name)) if cluster else []
        if cluster is None or not ranks:
            return None
        rank = self.choices.choice(ranks)
        self.scene.world.kill_rank(cluster, rank)
        return f"kill rank {rank.name}"

    async def delete_worker(self) -> str | None:
        """A worker pod goes, with or without grace."""
        cluster = self._cluster()
        pods = self.scene.world.pods(cluster, "worker") if cluster else []
        if not pods:
            return None
        pod, at_once = self.choices.choice(pods), self.choices.random() < 0.5
        await self.scene.world.delete_pod(pod, at_once=at_once)
        return f"delete pod {pod['metadata']['name']} {'at once' if at_once else ''}"

    async def delete_head(self) -> str | None:
        """The head's pod goes."""
        cluster = self._cluster()
        pods = self.scene.world.pods(cluster, "head") if cluster else []
        if not pods:
            return None
        await self.scene.world.delete_pod(pods[0], at_once=self.choices.random() < 0.5)
        return f"delete pod {pods[0]['metadata']['name']}"

    async def restart_head(self) -> str | None:
        """The head's container starts anew."""
        cluster = self._cluster()
        if cluster is None:
            return None
        self.scene.world.restart_head(cluster)
        return f"restart the head of {cluster}"

    async def delete_agent(self) -> str | None:
        """The agent's pod goes."""
        cluster = self._cluster()
        pods = self.scene.world.pods(cluster, "agent") if cluster else []
        if not pods:
            return None
        await self.scene.world.delete_pod(pods[0], at_once=self.choices.random() < 0.5)
        return f"delete pod {pods[0]['metadata']['name']}"

    async def freeze(self) -> str | None:
        """The GCS or the executor stops answering, or answers again."""
        cluster = self._cluster()
        if cluster is None:
            return None
        frozen = self.scene.world.frozen
        frozen ^= {cluster}
        return f"{'freeze' if cluster in frozen else 'thaw'} {cluster}"

    async def delete_child(self) -> str | None:
        """Somebody deletes what the operator made."""
        cluster = self._cluster()
        if cluster is None:
            return None
        kind = self.choice_of_child()
        await self.scene.delete(kind, CHILDREN[kind](cluster))
        return f"delete {kind.kind} {CHILDREN[kind](cluster)}"

    def choice_of_child(self) -> Kind:
        """One of the kinds that the operator makes."""
        return self.choices.choice(list(CHILDREN))

    async def edit_ray_cluster(self) -> str | None:
        """Somebody edits what the operator owns."""
        cluster = self._cluster()
        if cluster is None:
            return None
        group: dict[str, object] = {"workerGroupSpecs": []} if self.choices.random() < 0.3 else {"rayVersion": "2.53.0"}
        try:
            await self.scene.edit(kinds.RAY_CLUSTER, cluster, group)
        except ApiError as error:
            if error.status != 404:
                raise
            return None
        return f"edit RayCluster {cluster}: {group}"

    async def restart_reporter(self) -> str | None:
        """The reporter's process is killed; kubelet starts it again."""
        cluster = self._cluster()
        if cluster is None:
            return None
        self.scene.world.restart_reporter(cluster)
        return f"kill the reporter of {cluster}"

    async def restart_operator(self) -> str | None:
        """The operator's process is killed, or told to end, and another is started."""
        kill = self.choices.random() < 0.7
        await self._restart(kill)
        return f"{'kill' if kill else 'stop'} the operator, start another"

    def _one(self, names: Mapping[str, object]) -> str | None:
        return self.choices.choice(sorted(names)) if names else None

    def _cluster(self) -> str | None:
        clusters = sorted(set(self.story.clusters.values()))
        return self.choices.choice(clusters) if clusters else None
