"""Everything that runs in a namespace apart from the operator: pods, one Ray for each RayCluster, and the agents.

The real KubeRay and the real Deployment controller create the pods. What happens here bypasses the proxy.
"""

import asyncio
import random
import tempfile
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from tests.simulation.api import Api
from tests.simulation.executor import Executor, Surroundings
from tests.simulation.machines import Container, Machines
from tests.simulation.process import Process
from tests.simulation.proxy import Proxy
from tests.simulation.ray import Gcs, Rank
from tests.simulation.reporter import reporter
from workergroups_api.manifest import POD, Manifest
from workergroups_api.names import CLUSTER_LABEL, COMPONENT_LABEL
from workergroups_api.vocabulary import Component

RAY_CLUSTER_LABEL, NODE_TYPE_LABEL, GROUP_LABEL = "ray.io/cluster", "ray.io/node-type", "ray.io/group"


@dataclass
class Agent:
    """One life of an agent's containers."""

    container: Container
    executor: Executor
    directory: tempfile.TemporaryDirectory[str]
    reporter: Process | None = None
    tasks: list[asyncio.Task[None]] = field(default_factory=list)


class World:
    """The world of one namespace."""

    def __init__(self, api: Api, namespace: str, proxy: Proxy, choices: random.Random) -> None:
        self.api = api
        self.namespace = namespace
        self.random = choices
        self._proxy = proxy
        self.machines = Machines(api, namespace, choices, self._started, self._stopped)
        # The current life of each cluster's GCS.
        self.gcs: dict[str, Gcs] = {}
        # The state of clusters whose head starts again with it.
        self.away: dict[str, Gcs] = {}
        self.agents: dict[str, Agent] = {}
        # What agents did to ranks that had notice, or should have had it.
        self.rude: list[str] = []
        # Clusters whose GCS or executor runs, but does not answer.
        self.frozen: set[str] = set()
        # Clusters whose executor reports nonsense.
        self.lying: set[str] = set()
        # UID and incarnation of the groups whose methods have returned on all ranks.
        self.returned: set[tuple[str | None, int]] = set()
        # Class path -> what its constructor raises.
        self.failing: dict[str, str] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @classmethod
    @asynccontextmanager
    async def run(cls, api: Api, namespace: str, proxy: Proxy, choices: random.Random) -> AsyncIterator[Self]:
        """Simulate within the context."""
        world = cls(api, namespace, proxy, choices)
        follow = asyncio.create_task(world.machines.follow())
        try:
            yield world
        finally:
            follow.cancel()
            await asyncio.gather(follow, return_exceptions=True)
            await world.machines.close()
            await world.end_agents()
            for task in world._tasks:
                task.cancel()
            await asyncio.gather(*world._tasks, return_exceptions=True)

    def pods(self, cluster: str, component: Component) -> list[Manifest]:
        """Return the pods of a component that are not being deleted."""
        wanted = {CLUSTER_LABEL: cluster, COMPONENT_LABEL: component}
        return [
            pod
            for pod in self.machines.pods.values()
            if wanted.items() <= pod["metadata"].get("labels", {}).items()
            and "deletionTimestamp" not in pod["metadata"]
            and not is_foreign(pod)
        ]

    def live_ranks(self, cluster: str) -> list[Rank]:
        """Return the ranks whose processes run or start."""
        gcs = self.gcs.get(cluster)
        return [rank for rank in gcs.ranks.values() if rank.is_alive] if gcs else []

    async def copy_pod(self, pod: Manifest, name: str) -> None:
        """Copy a pod as `kubectl debug POD --copy-to=NAME --keep-labels` does."""
        spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
        metadata = {"name": name, "namespace": self.namespace, "labels": pod["metadata"]["labels"]}
        await self.api.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})

    async def delete_copies(self) -> None:
        """Remove the copies, as the user who created them would."""
        # From the API server: the watch may not have the latest one yet.
        for pod in filter(is_foreign, await self.api.list(POD, self.namespace)):
            await self.delete_pod(pod, at_once=True)

    async def delete_pod(self, pod: Manifest, *, at_once: bool = False) -> None:
        """Delete a pod, as a user, the drain of a node, or its loss does."""
        await self.api.delete(POD, self.namespace, pod["metadata"]["name"], grace=0 if at_once else None)

    def restart_head(self, cluster: str, *, keeps_state: bool = False, seconds: float = 0.05) -> None:
        """Restart the head's container in its pod, with what its GCS knew or without it."""
        gcs = self.gcs.get(cluster)
        if gcs is not None:
            if keeps_state:
                self.away[cluster] = gcs
            self.machines.restart(gcs.head_uid, seconds)

    def end_runs(self, cluster: str, ranks: Sequence[Rank], error: str | None = None) -> None:
        """Let the method that a group runs return on all of its ranks, or raise an exception on the first."""
        gcs = self.gcs[cluster]
        for rank in ranks[:1] if error is not None else ranks:
            gcs.end_run(rank, error)
        if error is None:
            self.returned |= {(rank.name.uid, rank.name.incarnation) for rank in ranks}

    def kill_rank(self, cluster: str, rank: Rank) -> None:
        """Kill a rank's process."""
        if cluster in self.gcs:
            self.gcs[cluster].kill(rank)

    def restart_reporter(self, cluster: str) -> None:
        """End the reporter wherever it is; kubelet restarts it."""
        for agent in self.agents.values():
            if _cluster(agent.container) == cluster:
                self._kill_reporter(agent)

    def cut_off_reporters(self) -> None:
        """Cut all connections of the reporters, which keep running."""
        for agent in self.agents.values():
            if agent.reporter is not None:
                self._proxy.cut_off(agent.reporter.name)

    def overview(self) -> list[str]:
        """Describe what exists, for the message of a wait that failed."""
        lines = []
        for uid, pod in sorted(self.machines.pods.items(), key=lambda item: str(item[1]["metadata"]["name"])):
            container = self.machines.running.get(uid)
            runs = f"runs with token {container.token}" if container else pod.get("status", {}).get("phase")
            leaving = ", is being deleted" if "deletionTimestamp" in pod["metadata"] else ""
            lines.append(f"pod {pod['metadata']['name']} {runs}{leaving}")
        lines += [
            f"GCS of {cluster} in {gcs.head_pod}: token {gcs.token}, session {gcs.session}, nodes {len(gcs.nodes)}"
            for cluster, gcs in self.gcs.items()
        ]
        for agent in self.agents.values():
            lives = agent.reporter is not None and agent.reporter.is_alive
            failure = agent.reporter.failure if agent.reporter else None
            lines.append(
                f"agent {agent.container.pod['metadata']['name']}: executor in {agent.executor.session}, "
                f"reporter {'lives' if lives else f'is dead: {failure!r}'}"
            )
        return lines

    # What happens to containers.

    def _started(self, container: Container) -> None:
        labels = container.pod["metadata"].get("labels", {})
        if labels.get(COMPONENT_LABEL) == Component.AGENT:
            # A copy, too: its containers run as in the original, and its ReplicaSet may keep it instead.
            self._start_agent(container)
        elif is_foreign(container.pod) or "generateName" not in container.pod["metadata"]:
            return  # No controller created it, as with a copy for debugging. It runs, and Ray does not know it.
        elif labels.get(NODE_TYPE_LABEL) == "head":
            self._start_head(container, labels[RAY_CLUSTER_LABEL])
        elif labels.get(NODE_TYPE_LABEL) == "worker":
            self._spawn(self._join(container, labels[RAY_CLUSTER_LABEL], labels[GROUP_LABEL]))

    def _stopped(self, container: Container) -> None:
        uid = container.pod["metadata"]["uid"]
        self._end_agent(uid)
        for gcs in self.away.values():
            gcs.lose(uid)
        for cluster, gcs in list(self.gcs.items()):
            if gcs.head_uid == uid:
                del self.gcs[cluster]
                if cluster not in self.away:
                    self._restart_workers(cluster)
            else:
                gcs.lose(uid)

    def _start_head(self, container: Container, cluster: str) -> None:
        metadata, left = container.pod["metadata"], self.away.pop(cluster, None)
        if left is not None and (left.head_uid, left.token) == (metadata["uid"], container.token):
            self.gcs[cluster] = left.come_back()
            return
        if left is not None:
            self._restart_workers(cluster)
        self.gcs[cluster] = Gcs(container.token, metadata["name"], metadata["uid"], rude=self.rude)

    def _restart_workers(self, cluster: str) -> None:
        """End the containers of the raylets, which end without their GCS."""
        for uid, container in list(self.machines.running.items()):
            labels = container.pod["metadata"].get("labels", {})
            if (labels.get(RAY_CLUSTER_LABEL), labels.get(NODE_TYPE_LABEL)) == (cluster, "worker"):
                self.machines.restart(uid, self.random.uniform(0.05, 0.3))

    async def _join(self, container: Container, cluster: str, node_group: str) -> None:
        """Wait, as a worker's raylet does, for a GCS that accepts its token."""
        metadata = container.pod["metadata"]
        while self.machines.running.get(metadata["uid"]) is container:
            gcs = self.gcs.get(cluster)
            if gcs is not None and gcs.token == container.token and cluster not in self.frozen:
                gcs.join(metadata["name"], metadata["uid"], node_group)
                return
            await asyncio.sleep(0.03)

    def _start_agent(self, container: Container) -> None:
        cluster = _cluster(container)
        directory = tempfile.TemporaryDirectory(prefix="exchange-")
        ray = Surroundings(
            gcs=lambda: self.gcs.get(cluster),
            is_frozen=lambda: cluster in self.frozen,
            is_lying=lambda: cluster in self.lying,
            failing=self.failing,
        )
        executor = Executor(Path(directory.name), container.token, ray)
        agent = Agent(container, executor, directory)
        self.agents[container.pod["metadata"]["uid"]] = agent
        agent.tasks = [asyncio.create_task(executor.run()), asyncio.create_task(self._keep_reporter(agent))]

    async def _keep_reporter(self, agent: Agent) -> None:
        """Restart the reporter's container when it ends, as kubelet does."""
        account = agent.container.pod["spec"].get("serviceAccountName", "default")
        while True:
            client = f"reporter-{_cluster(agent.container)}-{agent.container.pod['metadata']['uid'][:4]}"
            token = await self._service_account_token(account)
            url = await self._proxy.listen(client)
            exchange = Path(agent.directory.name)
            process = reporter(client, url, token, self.namespace, _cluster(agent.container), exchange).start()
            agent.reporter = process
            while process.is_alive:  # noqa: ASYNC110 (a thread ends without an event)
                await asyncio.sleep(0.05)
            self._proxy.cut_off(client)
            await asyncio.sleep(0.1)

    async def _service_account_token(self, account: str) -> str:
        while True:
            try:
                return await self.api.token(self.namespace, account)
            except Exception:  # the account is gone: kubelet waits for it
                await asyncio.sleep(0.1)

    def _kill_reporter(self, agent: Agent) -> None:
        if agent.reporter is not None and agent.reporter.is_alive:
            agent.reporter.kill()
            self._proxy.cut_off(agent.reporter.name)

    async def end_agents(self) -> None:
        """End all reporters at once, since those that still run would delay the others."""
        for agent in self.agents.values():
            for task in agent.tasks:
                task.cancel()
        reporters = [agent.reporter for agent in self.agents.values() if agent.reporter is not None]
        await asyncio.gather(*(asyncio.to_thread(each.kill) for each in reporters if each.is_alive))
        for uid in list(self.agents):
            self._end_agent(uid)

    def _end_agent(self, uid: str) -> None:
        agent = self.agents.pop(uid, None)
        if agent is None:
            return
        for task in agent.tasks:
            task.cancel()
        self._kill_reporter(agent)
        agent.directory.cleanup()

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def is_foreign(pod: Manifest) -> bool:
    """Whether no controller of ours created this pod, whatever its labels say."""
    return not any(owner.get("controller") for owner in pod["metadata"].get("ownerReferences", ()))


def _cluster(container: Container) -> str:
    return str(container.pod["metadata"]["labels"][CLUSTER_LABEL])
