"""Pods where every node is tainted, and where a quota wants requests and limits of every container."""

from tests.simulation.api import eventually
from workergroups_api.manifest import RESOURCE_POOL, WORKER_GROUP

QUOTA = {"limits.cpu": "100", "limits.memory": "200Gi", "requests.cpu": "50", "requests.memory": "100Gi"}
TEAM = {"key": "team", "operator": "Exists"}


def tolerations(pods):
    """The keys that each pod tolerates, but for those that Kubernetes adds."""
    return [
        {each.get("key") for each in pod["spec"]["tolerations"] if not each["key"].startswith("node.kubernetes.io")}
        for pod in pods
    ]


def all_pods(scene):
    return [pod for component in ("head", "worker", "agent") for pod in scene.world.pods("p", component)]


async def test_where_a_quota_wants_limits_a_pool_starts(scene):
    path = f"/api/v1/namespaces/{scene.namespace}/resourcequotas"
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": QUOTA}}
    await scene.api.request("POST", path, quota)

    async def counted():
        return (await scene.api.request("GET", f"{path}/q")).get("status", {}).get("hard")

    await eventually("the quota to count", counted)
    limits = {"spec": {"containers": [{"name": "ray-worker", "resources": {"limits": {"cpu": "4"}}}]}}
    await scene.pool("p", resources={"requests": {"memory": "4Gi"}}, podTemplate=limits)
    await scene.group("p")
    await scene.ready(WORKER_GROUP, "p", seconds=20)


async def test_where_every_node_is_tainted_head_and_agent_tolerate_what_the_nodes_do(scene):
    await scene.pool("p", tolerations=[TEAM], nodeSelector={"zone": "a"})
    await scene.ready(RESOURCE_POOL, "p")
    assert tolerations(all_pods(scene)) == [{"team"}] * 3
    assert [pod["spec"]["nodeSelector"] for pod in all_pods(scene)] == [{"zone": "a"}] * 3


async def test_the_agents_place_can_change_while_ranks_run(scene):
    await scene.pool("p")
    await scene.group("p")
    before = await scene.ready(WORKER_GROUP, "p")
    await scene.edit(RESOURCE_POOL, "p", {"agent": {"tolerations": [TEAM], "nodeSelector": {}}})

    async def has_moved():
        return tolerations(scene.world.pods("p", "agent")) == [{"team"}]

    await eventually("an agent elsewhere", has_moved)
    after = await scene.ready(WORKER_GROUP, "p", seconds=20)
    assert after["status"]["incarnation"] == before["status"]["incarnation"]
