"""What happens in a history, one action at a time: by users (`users`), by the world, and to our own processes."""

import random
from collections.abc import Awaitable, Callable

from simulation.api import ApiError
from simulation.scene import Scene
from simulation.story import Story
from simulation.users import Action, Users
from workergroups_api import manifest as kinds
from workergroups_api.manifest import Kind
from workergroups_api.names import agent_name, plan_name, token_secret_name

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
        self.users = Users(scene, story, choices)
        self._restart = restart

    def use(self, choices: random.Random) -> None:
        """Take all choices from this generator from now on."""
        self.choices = self.users.choices = self.story.choices = choices

    def drawn(self, *, by_users_only: bool) -> Action:
        """Return the next action."""
        weights = self.users.weights() | ({} if by_users_only else self._weights())
        return self.choices.choices(list(weights), list(weights.values()))[0]

    def _weights(self) -> dict[Action, int]:
        return {
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

    def _cluster(self) -> str | None:
        clusters = sorted(set(self.story.clusters.values()))
        return self.choices.choice(clusters) if clusters else None
