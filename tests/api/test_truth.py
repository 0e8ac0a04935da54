"""A status that says True is true: of this session, this incarnation, these pods."""

import asyncio
from dataclasses import replace

import pytest

from tests.simulation import operator
from tests.simulation.api import eventually
from tests.simulation.faults import UNAVAILABLE, CutBody, Delay, Late, Rule
from tests.simulation.monitor import SLACK_SECONDS, Monitor
from tests.simulation.scene import NEVER_RESTARTED, OPERATOR, condition
from workergroups_api.manifest import LEASE, RESOURCE_POOL, WORKER_GROUP


@pytest.fixture
def turns(scene, runner):
    """How Ready of all objects turned."""
    monitor = Monitor(scene)
    task = runner.get_loop().create_task(monitor.run())
    yield monitor.turns
    task.cancel()


@pytest.fixture
def ready(scene, runner):
    """A pool of two nodes, and a group on it."""

    async def make():
        await scene.pool("p", nodes=2)
        await scene.group("p", **NEVER_RESTARTED)
        await scene.ready(WORKER_GROUP, "p")
        await scene.ready(RESOURCE_POOL, "p")

    runner.run(make())
    return scene


def of(group):
    return group["status"]["session"], group["status"]["incarnation"]


async def test_a_killed_rank_is_reported_within_a_second(ready):
    ready.world.kill_rank("p", ready.world.live_ranks("p")[0])
    found = await ready.until(WORKER_GROUP, "p", "Ready", "False", "ProcessDied", seconds=1 + SLACK_SECONDS)
    assert condition(found)["message"].startswith("rank 0")
    assert (await ready.condition(RESOURCE_POOL, "p"))["status"] == "True"


async def both_turn_false(ready):
    """Both are looked at from now on: the pool may be Ready again before the group says that it is not."""
    kinds, seconds = (WORKER_GROUP, RESOURCE_POOL), 1 + SLACK_SECONDS
    await asyncio.gather(*(ready.until(kind, "p", "Ready", "False", seconds=seconds) for kind in kinds))


@pytest.mark.parametrize("at_once", [True, False])
async def test_a_worker_pod_that_goes_is_reported_within_a_second(ready, at_once):
    ready.world.machines.termination_seconds = 3.0
    with ready.world.machines.full():
        await ready.world.delete_pod(ready.world.pods("p", "worker")[0], at_once=at_once)
        await both_turn_false(ready)


async def test_a_killed_raylet_of_a_worker_is_reported_within_a_second(ready):
    ready.world.machines.restart(ready.world.pods("p", "worker")[0]["metadata"]["uid"], seconds=4.0)
    await both_turn_false(ready)


@pytest.mark.parametrize("how", ["delete", "delete at once", "restart"])
async def test_a_new_head_is_a_new_session_and_a_new_incarnation(ready, turns, how):
    old = await ready.get(WORKER_GROUP, "p")
    with ready.world.machines.full():
        if how == "restart":
            ready.world.restart_head("p")
        else:
            await ready.world.delete_pod(ready.world.pods("p", "head")[0], at_once=how == "delete at once")
        # In the same pod, it may still come back as it was: then all is Unknown until it has another session.
        seconds = 5 if how == "restart" else 1
        await ready.until(WORKER_GROUP, "p", "Ready", "False", seconds=seconds + SLACK_SECONDS)
    new = await ready.ready(WORKER_GROUP, "p", seconds=20)
    assert of(new) == (ready.world.gcs["p"].session, of(old)[1] + 1)
    ranks = ready.world.gcs["p"].ranks_of(new["metadata"]["uid"], of(new)[1])
    assert [rank.state for rank in ranks.values()] == ["ALIVE"] * 4
    await eventually("two turns", lambda: [t.after for t in turns if t.kind == "WorkerGroup"][-2:] == ["False", "True"])
    assert len([turn for turn in turns if turn.kind == "WorkerGroup" and turn.before == "True"]) == 1


async def test_a_head_that_comes_back_with_its_state_has_the_same_ranks_and_meanwhile_all_is_unknown(ready, turns):
    old = await ready.get(WORKER_GROUP, "p")
    ready.world.gcs["p"].drivers.append("ppo-1")
    ready.world.restart_head("p", keeps_state=True, seconds=1.0)
    for kind in (RESOURCE_POOL, WORKER_GROUP):
        found = await ready.until(kind, "p", "Ready", "Unknown", "HeadAway", seconds=1 + SLACK_SECONDS)
        assert "ranks that ran keep running" in condition(found)["message"]
    assert of(await ready.ready(WORKER_GROUP, "p", seconds=20)) == of(old)
    seen = ("WorkerGroup", "ResourcePool")
    await eventually("the turns", lambda: {t.after for t in turns if t.kind in seen} == {"Unknown", "True"})


async def test_a_rank_that_ends_while_the_head_is_away_is_never_ready_again(ready, turns):
    old, rank = await ready.get(WORKER_GROUP, "p"), ready.world.live_ranks("p")[0]
    gcs = ready.world.gcs["p"]
    ready.world.restart_head("p", keeps_state=True, seconds=1.0)
    await ready.until(WORKER_GROUP, "p", "Ready", "Unknown", seconds=1 + SLACK_SECONDS)
    gcs.kill(rank)
    found = await ready.until(WORKER_GROUP, "p", "Ready", "False", "ProcessDied", seconds=20)
    assert of(found) == of(old)
    assert "True" not in [turn.after for turn in turns if turn.kind == "WorkerGroup"]


async def test_an_executor_that_hangs_is_reported_within_fifteen_seconds(ready):
    ready.world.frozen.add("p")
    found = await ready.until(WORKER_GROUP, "p", "Ready", "Unknown", seconds=15 + SLACK_SECONDS)
    assert "Ray's GCS does not answer" in condition(found)["message"]
    ready.world.frozen.clear()
    assert of(await ready.ready(WORKER_GROUP, "p")) == of(found)


async def test_agent_and_rank_that_go_together_are_reported_within_five_seconds(ready):
    ready.world.kill_rank("p", ready.world.live_ranks("p")[0])
    await ready.world.delete_pod(ready.world.pods("p", "agent")[0], at_once=True)
    await ready.until(WORKER_GROUP, "p", "Ready", "False", seconds=5 + SLACK_SECONDS)


def is_report(request):
    return request.client.startswith("reporter") and request.subresource == "status"


async def test_an_agent_that_comes_back_is_believed_when_what_it_says_is_in_the_status(ready, turns):
    ready.world.frozen.add("p")
    await ready.until(WORKER_GROUP, "p", "Ready", "Unknown", seconds=15 + SLACK_SECONDS)
    ready.world.kill_rank("p", ready.world.live_ranks("p")[0])
    ready.proxy.begin_faults()
    ready.proxy.rule(Rule(is_report, Delay(2.0), times=10))
    ready.world.frozen.clear()
    await ready.until(WORKER_GROUP, "p", "Ready", "False", "ProcessDied", seconds=5 + SLACK_SECONDS)
    await eventually("the turn", lambda: [t.after for t in turns if t.kind == "WorkerGroup"][-1:] == ["False"])
    assert [turn.after for turn in turns if turn.kind == "WorkerGroup"] == ["Unknown", "False"]


@pytest.fixture
def patient(scene, runner, monkeypatch):
    """The operator waits long for an agent that is away."""
    runner.run(scene.stop_operator())
    monkeypatch.setattr(operator, "timings", replace(operator.timings, agent_away=60.0))
    scene.start_operator()


async def renewals(scene, count):
    """Wait until the Lease was renewed that often, and the agent is connected."""
    seen = set()

    async def is_renewed():
        spec = (await scene.get(LEASE, "p-agent"))["spec"]
        seen.add(spec["renewTime"])
        return len(seen) > count and "holderIdentity" in spec

    await eventually("renewals", is_renewed, 60)


async def test_a_restarted_agent_is_no_news(patient, ready, turns):
    (old,) = ready.world.pods("p", "agent")
    await ready.world.delete_pod(old, at_once=True)
    names = {old["metadata"]["name"]}
    await eventually("another agent", lambda: {p["metadata"]["name"] for p in ready.world.pods("p", "agent")} - names)
    await renewals(ready, 3)
    ready.world.restart_reporter("p")
    await renewals(ready, 3)
    assert turns == []


async def test_an_edited_deadline_changes_no_condition(ready, turns):
    before = [condition(await ready.get(kind, "p")) for kind in (RESOURCE_POOL, WORKER_GROUP)]
    for kind in (RESOURCE_POOL, WORKER_GROUP):
        body = await ready.edit(kind, "p", {"progressDeadlineSeconds": 77})
        await eventually("it to be seen", lambda kind=kind, n=body["metadata"]["generation"]: _seen(ready, kind, n))
    after = [condition(await ready.get(kind, "p")) for kind in (RESOURCE_POOL, WORKER_GROUP)]
    assert turns == []
    assert [c["lastTransitionTime"] for c in after] == [c["lastTransitionTime"] for c in before]


async def _seen(scene, kind, generation):
    return (await scene.get(kind, "p"))["status"].get("observedGeneration") == generation


@pytest.mark.parametrize("kill", [True, False])
async def test_a_restarted_operator_writes_nothing(ready, turns, kill):
    await ready.rest(quiet=3)
    writes = len(ready.proxy.writes_since(0))
    if kill:
        ready.kill_operator()
    else:
        await ready.stop_operator()
    ready.start_operator()
    await asyncio.sleep(5)
    assert [str(write.request) for write in ready.proxy.writes_since(0)[writes:]] == []
    assert turns == []


async def test_what_happened_while_the_operator_was_away_is_reported_after_its_start(ready):
    await ready.stop_operator()
    ready.world.kill_rank("p", ready.world.live_ranks("p")[0])
    await asyncio.sleep(1)
    ready.start_operator()
    await ready.until(WORKER_GROUP, "p", "Ready", "False", "ProcessDied", seconds=5 + SLACK_SECONDS)


async def test_an_agent_that_returns_vouches_for_no_status_that_was_read_before(ready, turns):
    """The operator reads the group before the agent writes that a rank is dead, and learns that the agent is back."""
    ready.world.frozen.add("p")
    await ready.until(WORKER_GROUP, "p", "Ready", "Unknown", seconds=15 + SLACK_SECONDS)
    ready.world.kill_rank("p", ready.world.live_ranks("p")[0])
    read = ready.proxy.rule(Rule(lambda request: str(request) == f"{OPERATOR} GET workergroups/p", Late(2.0), times=1))
    await ready.edit(RESOURCE_POOL, "p", {"progressDeadlineSeconds": 100})
    await eventually("the operator reads the group", lambda: read.hits, seconds=5)
    ready.world.frozen.clear()
    await ready.until(WORKER_GROUP, "p", "Ready", "False", "ProcessDied", seconds=10 + SLACK_SECONDS)
    assert "True" not in [turn.after for turn in turns if turn.kind == WORKER_GROUP.kind], turns


async def test_an_answer_that_breaks_off_does_not_end_an_operator_that_starts(ready):
    await ready.stop_operator()
    ready.world.kill_rank("p", ready.world.live_ranks("p")[0])
    half = Rule(lambda request: request.client == OPERATOR and not request.plural, CutBody(), times=3)
    ready.proxy.faults.rules.append(half)
    ready.start_operator()
    await ready.until(WORKER_GROUP, "p", "Ready", "False", "ProcessDied", seconds=5 + SLACK_SECONDS)
    assert half.hits == 3
    assert ready.operator.is_alive


async def test_an_api_server_that_is_away_for_a_moment_is_no_news(ready, turns):
    # Of random faults, some would let the objects be read, which is another case.
    ready.proxy.rule(Rule(lambda request: True, UNAVAILABLE, times=10**6))
    ready.proxy.cut_off(OPERATOR)
    ready.world.cut_off_reporters()
    await asyncio.sleep(4)
    ready.proxy.end_faults()
    await asyncio.sleep(6)
    assert turns == []


@pytest.mark.long
async def test_what_happens_right_after_a_long_outage_of_the_api_server_is_reported_soon(ready):
    ready.proxy.rule(Rule(lambda request: request.client == OPERATOR, UNAVAILABLE, times=10**6))
    ready.proxy.cut_off(OPERATOR)
    await asyncio.sleep(25)
    ready.proxy.end_faults()
    with ready.world.machines.full():
        await ready.world.delete_pod(ready.world.pods("p", "head")[0], at_once=True)
        await ready.until(RESOURCE_POOL, "p", "Ready", "False", seconds=1 + SLACK_SECONDS)


async def test_what_happened_while_much_was_refused_is_reported_soon_after(ready):
    """Each event finds the API server refusing, and after the last of them it refuses no more."""
    ready.proxy.rule(
        Rule(lambda request: request.client == OPERATOR and "watch" not in request.query, UNAVAILABLE, 10**6)
    )
    with ready.world.machines.full():
        await ready.world.delete_pod(ready.world.pods("p", "head")[0], at_once=True)
        for number in range(15):
            await ready.edit(WORKER_GROUP, "p", {"progressDeadlineSeconds": 100 + number})
            await asyncio.sleep(0.1)
        ready.proxy.end_faults()
        await ready.until(RESOURCE_POOL, "p", "Ready", "False", seconds=2 + SLACK_SECONDS)
