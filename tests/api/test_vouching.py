"""The Lease vouches only for what has been written: an object whose status is refused is Unknown, and no other one."""

import asyncio
import os
from pathlib import Path

import pytest

from tests.simulation.api import eventually
from tests.simulation.faults import WEBHOOK, Delay, Refuse, Rule
from tests.simulation.monitor import SLACK_SECONDS
from tests.simulation.scene import NEVER_RESTARTED, OPERATOR, condition
from workergroups_api.manifest import EVENT, LEASE, RESOURCE_POOL, WORKER_GROUP
from workergroups_api.names import DOUBTS_ANNOTATION, agent_name
from workergroups_api.vouching import from_annotation

# Until an operator that is told by the Lease has written Unknown.
UNWRITTEN_SECONDS = 4 + SLACK_SECONDS
TOO_LARGE = Refuse(413, "RequestEntityTooLarge", "etcdserver: request is too large")
INVALID = Refuse(422, "Invalid", "status.ranks: Invalid value: simulated")


@pytest.fixture
def ready(scene, runner):
    """Two pools on one cluster, each with a group."""

    async def make():
        for name in ("p", "q"):
            await scene.pool(name, clusterName="p")
            await scene.group(name, **NEVER_RESTARTED)
        for name in ("p", "q"):
            await scene.ready(WORKER_GROUP, name)
            await scene.ready(RESOURCE_POOL, name)

    runner.run(make())
    return scene


def reports_on(plural, name):
    def matches(request):
        found = request.client, request.plural, request.name, request.subresource
        return found[0].startswith("reporter") and found[1:] == (plural, name, "status")

    return matches


def kill_rank_of(scene, group):
    ranks = [rank for rank in scene.world.live_ranks("p") if rank.name.group == group]
    scene.world.kill_rank("p", ranks[0])


def exchange_of(scene):
    (agent,) = scene.world.agents.values()
    return Path(agent.directory.name)


async def neighbours_are_true(scene):
    for kind, name in ((RESOURCE_POOL, "p"), (RESOURCE_POOL, "q"), (WORKER_GROUP, "q")):
        assert (await scene.condition(kind, name))["status"] == "True"


@pytest.mark.parametrize("refusal", [WEBHOOK, TOO_LARGE, INVALID, Delay(60.0)], ids=["403", "413", "422", "slow"])
async def test_an_object_whose_status_is_refused_is_unknown_and_its_neighbours_stay_true(ready, refusal):
    ready.proxy.begin_faults()
    ready.proxy.rule(Rule(reports_on("workergroups", "p"), refusal, times=10**6))
    kill_rank_of(ready, "p")
    found = await ready.until(WORKER_GROUP, "p", "Ready", "Unknown", "StatusNotWritten", seconds=UNWRITTEN_SECONDS)
    words = "has not answered" if isinstance(refusal, Delay) else refusal.message
    assert words in condition(found)["message"]
    assert condition(found, "RanksReady")["status"] == "Unknown"
    await neighbours_are_true(ready)
    kill_rank_of(ready, "q")
    await ready.until(WORKER_GROUP, "q", "Ready", "False", "ProcessDied", seconds=1 + SLACK_SECONDS)
    ready.proxy.end_faults()
    await ready.until(WORKER_GROUP, "p", "Ready", "False", "ProcessDied", seconds=10 + SLACK_SECONDS)


@pytest.mark.long
async def test_an_api_server_that_answered_nobody_for_a_while_leaves_no_doubt(ready):
    """What it was told meanwhile arrives when it goes on, also if nobody waits for the answer any more."""
    uid = (await ready.get(RESOURCE_POOL, "p"))["metadata"]["uid"]
    ready.proxy.begin_faults()
    ready.proxy.rule(Rule(lambda request: not request.is_watch, Delay(60.0), times=10**6))
    ready.world.gcs["p"].drivers[:] = ["ppo-1"]
    await asyncio.sleep(8)
    ready.proxy.end_faults()
    said: set[str] = set()

    async def written():
        lease = await ready.get(LEASE, agent_name("p"))
        said.update(from_annotation(lease["metadata"].get("annotations", {}).get(DOUBTS_ANNOTATION)))
        said.add((await ready.condition(RESOURCE_POOL, "p"))["reason"])
        return (await ready.get(RESOURCE_POOL, "p"))["status"]["drivers"].get("jobs") == ["ppo-1"]

    await eventually("the driver in the status", written)
    ends = asyncio.get_running_loop().time() + 3
    while asyncio.get_running_loop().time() < ends:
        await written()
    assert said == {"Reserved"}, f"{uid} was in doubt"


async def test_a_pool_whose_status_is_refused_is_unknown(ready):
    ready.proxy.rule(Rule(reports_on("resourcepools", "q"), WEBHOOK, times=10**6))
    # Both pods are looked up before the first is deleted: KubeRay replaces it at once, and the new one is listed last.
    for pod in ready.world.pods("p", "worker"):
        await ready.world.delete_pod(pod, at_once=True)
    await ready.until(RESOURCE_POOL, "q", "NodesReady", "Unknown", "StatusNotWritten", seconds=UNWRITTEN_SECONDS)
    await ready.ready(RESOURCE_POOL, "p", seconds=20)


async def test_a_doubt_outlives_the_reporter_that_had_it(ready):
    ready.proxy.rule(Rule(reports_on("workergroups", "p"), WEBHOOK, times=10**6))
    kill_rank_of(ready, "p")
    await ready.until(WORKER_GROUP, "p", "Ready", "Unknown", "StatusNotWritten", seconds=UNWRITTEN_SECONDS)
    ready.world.restart_reporter("p")
    for _ in range(40):
        await asyncio.sleep(0.1)
        assert (await ready.condition(WORKER_GROUP, "p"))["status"] != "True"


def pipe(path):
    os.mkfifo(path)


def nested(path):
    path.write_bytes(b"[" * 100_000)


def endless(path):
    path.symlink_to("/dev/zero")


def nothing(path):
    pass


@pytest.mark.parametrize(
    ("put", "words"), [(pipe, "not a regular file"), (nested, "not JSON"), (endless, "symbolic links"), (nothing, "")]
)
async def test_reports_that_cannot_be_read_are_not_vouched_for_though_the_heartbeat_continues(ready, put, words):
    path = exchange_of(ready) / "reports" / "reports.json"
    path.unlink()
    put(path)
    found = await ready.until(WORKER_GROUP, "p", "Ready", "Unknown", seconds=7 + SLACK_SECONDS)
    assert words in condition(found)["message"]
    # The simulated observer writes its reports again as soon as there is something new.
    kill_rank_of(ready, "p")
    await ready.until(WORKER_GROUP, "p", "Ready", "False", "ProcessDied", seconds=3 + SLACK_SECONDS)
    await ready.ready(WORKER_GROUP, "q", seconds=3 + SLACK_SECONDS)


async def test_a_status_that_the_operator_may_not_write_is_reported_in_an_event(ready):
    def of_operator(request):
        found = request.client, request.plural, request.name, request.subresource
        return found == (OPERATOR, "workergroups", "p", "status")

    ready.proxy.begin_faults()
    ready.proxy.rule(Rule(of_operator, WEBHOOK, times=10**6))
    kill_rank_of(ready, "p")
    kill_rank_of(ready, "q")
    await ready.until(WORKER_GROUP, "q", "Ready", "False", "ProcessDied", seconds=1 + SLACK_SECONDS)

    async def told():
        events = await ready.api.list(EVENT, ready.namespace)
        return [event for event in events if event["reason"] == "StatusRefused"]

    await asyncio.sleep(3)
    (event,) = await eventually("the event", told)
    assert event["regarding"]["name"] == "p"
    assert WEBHOOK.message in event["note"]
    assert "Ready=False, ProcessDied: rank 0" in event["note"]
    ready.proxy.end_faults()
    await ready.until(WORKER_GROUP, "p", "Ready", "False", "ProcessDied", seconds=20)


async def test_a_status_for_which_the_api_server_takes_long_delays_no_other(ready):
    """As that of an object with a hundred thousand values, or behind a slow webhook."""

    def is_slow(request):
        found = request.client, request.plural, request.name, request.subresource
        return found == (OPERATOR, "workergroups", "p", "status")

    ready.proxy.rule(Rule(is_slow, Delay(12.0), times=10**6))
    kill_rank_of(ready, "p")
    await asyncio.sleep(1.5)  # the operator writes that it is dead
    kill_rank_of(ready, "q")
    await ready.until(WORKER_GROUP, "q", "Ready", "False", "ProcessDied", seconds=1 + SLACK_SECONDS)
    ready.proxy.end_faults()
    await ready.until(WORKER_GROUP, "p", "Ready", "False", "ProcessDied", seconds=15 + SLACK_SECONDS)
