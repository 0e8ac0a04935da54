"""The actions of a history: those of users (`users`), of the world, and of our own processes."""

import random
import time
from collections.abc import Awaitable, Callable

from tests.simulation.api import ApiError
from tests.simulation.scene import Scene
from tests.simulation.story import Story
from tests.simulation.users import Action, Users
from workergroups_api import manifest as kinds
from workergroups_api.children import child_names
from workergroups_api.manifest import RESOURCE_POOL, WORKER_GROUP
from workergroups_api.vocabulary import Component

FORBIDDEN = 403


class Actions:
    """Each action returns what it did, None if there was nothing to do."""

    def __init__(
        self, scene: Scene, story: Story, choices: random.Random, restart: Callable[[bool], Awaitable[None]]
    ) -> None:
        self.scene = scene
        self.story = story
        self.choices = choices
        self.users = Users(scene, story, choices)
        self._restart = restart

    def use(self, choices: random.Random) -> None:
        """Draw all choices from this generator from now on."""
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
            self.lie: 1,
            self.pause_rank: 2,
            self.connect_driver: 2,
            self.end_run: 8,
            self.unfit_node: 2,
            self.copy_pod: 2,
            self.second_operator: 1,
            self.refuse_statuses: 1,
            self.delete_child: 4,
            self.edit_ray_cluster: 1,
            self.restart_reporter: 3,
            self.restart_operator: 5,
        }

    async def kill_rank(self) -> str | None:
        """Kill a rank's process."""
        cluster = self._cluster()
        ranks = sorted(self.scene.world.live_ranks(cluster), key=lambda rank: str(rank.name)) if cluster else []
        if cluster is None or not ranks:
            return None
        rank = self.choices.choice(ranks)
        self.scene.world.kill_rank(cluster, rank)
        return f"kill rank {rank.name}"

    async def end_run(self) -> str | None:
        """Let the method that a group runs return on all ranks, or raise an exception on one."""
        running = sorted(
            {
                (cluster, rank.name.uid, rank.name.incarnation)
                for cluster, gcs in self.scene.world.gcs.items()
                for rank in gcs.ranks.values()
                if rank.is_alive and gcs.is_running(rank)
            }
        )
        if not running:
            return None
        cluster, uid, incarnation = self.choices.choice(running)
        gcs = self.scene.world.gcs[cluster]
        ranks = [rank for _, rank in sorted(gcs.ranks_of(uid, incarnation).items())]
        self.choices.shuffle(ranks)
        error = None if self.choices.random() < 0.7 else "ValueError: nan"
        if error is None and not all(rank.is_alive and gcs.is_running(rank) for rank in ranks):
            return None  # One of them is dead, so the method cannot return on all.
        self.scene.world.end_runs(cluster, ranks, error)
        return f"the method of {ranks[0].name.group}, incarnation {incarnation}, ends: {error}"

    async def unfit_node(self) -> str | None:
        """Break a node in a way that a preflight notices, or repair all nodes of the cluster."""
        cluster = self._cluster()
        gcs = self.scene.world.gcs.get(cluster) if cluster else None
        pods = self.scene.world.pods(cluster, Component.WORKER) if cluster else []
        if gcs is None or not pods:
            return None
        if gcs.unfit:
            gcs.unfit.clear()
            return f"the nodes of {cluster} are fit"
        pod = self.choices.choice(pods)["metadata"]["name"]
        gcs.unfit[pod] = "volumes: it cannot write to /data"
        return f"node {pod} is unfit"

    async def connect_driver(self) -> str | None:
        """Connect a driver, or end the one that is connected, or both."""
        cluster = self._cluster()
        gcs = self.scene.world.gcs.get(cluster) if cluster else None
        if gcs is None:
            return None
        if gcs.drivers:
            gcs.last_driver_end = time.time()
            return f"end driver {gcs.drivers.pop()}"
        if self.choices.random() < 0.2:  # so short that nobody sees it connected
            gcs.last_driver_end = time.time()
            return f"a driver comes to {cluster}, and goes"
        gcs.drivers.append(f"job-{self.choices.randrange(1000)}")
        return f"connect driver {gcs.drivers[0]} to {cluster}"

    async def delete_worker(self) -> str | None:
        """Delete a worker pod, with or without grace."""
        cluster = self._cluster()
        pods = self.scene.world.pods(cluster, Component.WORKER) if cluster else []
        if not pods:
            return None
        pod, at_once = self.choices.choice(pods), self.choices.random() < 0.5
        await self.scene.world.delete_pod(pod, at_once=at_once)
        return f"delete pod {pod['metadata']['name']} {'at once' if at_once else ''}"

    async def delete_head(self) -> str | None:
        """Delete the head's pod."""
        cluster = self._cluster()
        pods = self.scene.world.pods(cluster, Component.HEAD) if cluster else []
        if not pods:
            return None
        await self.scene.world.delete_pod(pods[0], at_once=self.choices.random() < 0.5)
        return f"delete pod {pods[0]['metadata']['name']}"

    async def restart_head(self) -> str | None:
        """Restart the head's container."""
        cluster = self._cluster()
        if cluster is None:
            return None
        keeps_state, seconds = self.choices.random() < 0.6, self.choices.uniform(0.05, 2.0)
        self.scene.world.restart_head(cluster, keeps_state=keeps_state, seconds=seconds)
        return f"restart the head of {cluster} after {seconds:.1f} s {'with' if keeps_state else 'without'} its state"

    async def delete_agent(self) -> str | None:
        """Delete the agent's pod."""
        cluster = self._cluster()
        pods = self.scene.world.pods(cluster, Component.AGENT) if cluster else []
        if not pods:
            return None
        await self.scene.world.delete_pod(pods[0], at_once=self.choices.random() < 0.5)
        return f"delete pod {pods[0]['metadata']['name']}"

    async def freeze(self) -> str | None:
        """Freeze the GCS or the executor, or continue it."""
        cluster = self._cluster()
        if cluster is None:
            return None
        frozen = self.scene.world.frozen
        frozen ^= {cluster}
        return f"{'freeze' if cluster in frozen else 'thaw'} {cluster}"

    async def lie(self) -> str | None:
        """Make the executor report on objects that are not planned or not its own, or report the truth again."""
        cluster = self._cluster()
        if cluster is None:
            return None
        lying = self.scene.world.lying
        lying ^= {cluster}
        return f"the executor of {cluster} {'lies' if cluster in lying else 'is honest'}"

    async def pause_rank(self) -> str | None:
        """Pause a rank for a debugger, or continue it."""
        cluster = self._cluster()
        ranks = sorted(self.scene.world.live_ranks(cluster), key=lambda rank: str(rank.name)) if cluster else []
        if cluster is None or not ranks:
            return None
        rank, gcs = self.choices.choice(ranks), self.scene.world.gcs[cluster]
        if gcs.pauses.pop(str(rank.name), None):
            return f"rank {rank.name} goes on"
        gcs.pause(rank)
        return f"rank {rank.name} pauses"

    async def copy_pod(self) -> str | None:
        """Copy a pod with its labels, as users do for debugging."""
        cluster = self._cluster()
        pods_of = self.scene.world.pods
        pods = [pod for each in Component for pod in pods_of(cluster, each)] if cluster else []
        if not pods:
            return None
        pod, name = self.choices.choice(pods), f"copy-{self.choices.randint(0, 10**6)}"
        try:
            await self.scene.world.copy_pod(pod, name)
        except ApiError as error:
            if error.status != FORBIDDEN:
                raise
            return f"copy no pod, since its ServiceAccount is gone: {error}"
        return f"copy pod {pod['metadata']['name']} to {name}"

    async def second_operator(self) -> str | None:
        """Start a second operator for the same namespaces, or end it."""
        if self.scene.second_operator is None:
            self.scene.start_second_operator()
            return "start a second operator"
        await self.scene.stop_second_operator()
        return "stop the second operator"

    async def refuse_statuses(self) -> str | None:
        """Reject all writes to one object's status, as a webhook may, or accept them again."""
        kind = self.choices.choice((RESOURCE_POOL, WORKER_GROUP))
        names = self.story.pools if kind is RESOURCE_POOL else self.story.groups
        if not names:
            return None
        name, who = self.choices.choice(sorted(names)), self.choices.choice(("operator", "reporter", ""))
        is_refused = self.scene.refuse_statuses(kind, name, who)
        return f"statuses of {kind.kind} {name} by {who or 'anybody'} are {'refused' if is_refused else 'taken'}"

    async def delete_child(self) -> str | None:
        """Delete an object that the operator created."""
        cluster = self._cluster()
        if cluster is None:
            return None
        kind, name = self.choices.choice(child_names(cluster))
        await self.scene.delete(kind, name)
        return f"delete {kind.kind} {name}"

    async def edit_ray_cluster(self) -> str | None:
        """Edit an object that the operator owns."""
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
        """Kill the reporter's process, which kubelet restarts."""
        cluster = self._cluster()
        if cluster is None:
            return None
        self.scene.world.restart_reporter(cluster)
        return f"kill the reporter of {cluster}"

    async def restart_operator(self) -> str | None:
        """Kill the operator's process or ask it to end, and start another."""
        kill = self.choices.random() < 0.7
        await self._restart(kill)
        return f"{'kill' if kill else 'stop'} the operator, start another"

    def _cluster(self) -> str | None:
        clusters = sorted(set(self.story.clusters.values()))
        return self.choices.choice(clusters) if clusters else None
