"""Whatever a list or a watch answers, and whatever the objects hold that they name, the operator goes on."""

import asyncio
import json
import time

import pytest

from tests.simulation import operator
from tests.simulation.api import eventually
from tests.simulation.faults import WATCH_ERRORS, CutBody, Refuse, Rule, Say, Silence
from tests.simulation.scene import OPERATOR
from tests.simulation.scene import group as scene_group
from workergroups_api import manifest as kinds
from workergroups_api.manifest import WORKER_GROUP
from workergroups_operator.timings import Timings

REFUSALS = {
    "401": Refuse(401, "Unauthorized", "Unauthorized"),
    "404": Refuse(404, "NotFound", "the server could not find the requested resource"),
    "429 for years": Refuse(429, "TooManyRequests", "later", retry_after=10**9),
}
# tests/unit/operator/test_connection.py has all that can go wrong; here is what matters to kopf.
WATCHES = REFUSALS | {name: WATCH_ERRORS[name] for name in ("no leader", "expired", "no JSON", "nothing")}
LISTS = REFUSALS | {"half": CutBody(), "HTML": Say(b"<html>OK</html>", content_type="text/html")}
WATCHED_KINDS = 12


def is_watch(request):
    return request.client == OPERATOR and request.is_watch


def is_list(request):
    """Of groups: the operator lists other kinds outside of kopf, too."""
    is_get = request.client == OPERATOR and request.method == "GET" and not request.is_watch
    return is_get and request.plural == "workergroups" and request.name is None


@pytest.mark.parametrize("fault", WATCHES.values(), ids=WATCHES)
async def test_a_watch_that_fails_is_asked_for_again(scene, fault):
    await scene.pool("p")
    await scene.ready(kinds.RESOURCE_POOL, "p")
    rule = scene.proxy.rule(Rule(is_watch, fault, times=15))
    scene.proxy.cut_off(OPERATOR)
    await eventually("a watch to fail", lambda: rule.hits)
    await scene.group("p")
    await scene.ready(WORKER_GROUP, "p", seconds=15)
    assert scene.operator.is_alive


@pytest.mark.parametrize("fault", LISTS.values(), ids=LISTS)
async def test_a_list_that_fails_is_asked_for_again(scene, fault):
    await scene.pool("p")
    await scene.ready(kinds.RESOURCE_POOL, "p")
    rule = scene.proxy.rule(Rule(is_list, fault, times=2))
    scene.proxy.rule(Rule(is_watch, WATCH_ERRORS["expired"], times=15))
    scene.proxy.cut_off(OPERATOR)
    await eventually("a list to fail", lambda: rule.hits)
    await scene.group("p")
    await scene.ready(WORKER_GROUP, "p", seconds=15)
    assert scene.operator.is_alive


async def test_a_watch_that_always_fails_is_not_asked_for_without_a_pause(scene):
    rule = scene.proxy.rule(Rule(is_watch, WATCH_ERRORS["nothing"], times=10**6))
    scene.proxy.cut_off(OPERATOR)
    await eventually("a watch to fail", lambda: rule.hits)
    before = rule.hits
    await asyncio.sleep(6)
    assert 0 < rule.hits - before <= WATCHED_KINDS * (6 / Timings().watch_retry + 1)


async def test_an_operator_stops_while_its_watches_are_silent(scene):
    await silence(scene)
    began = time.monotonic()
    await scene.operator.stop(seconds=30)
    assert time.monotonic() - began < 10


async def test_a_silent_watch_is_replaced(scene, monkeypatch):
    await scene.stop_operator()
    monkeypatch.setattr(operator, "timings", Timings(watch=3.0))
    scene.start_operator()
    await silence(scene)
    await scene.pool("p")
    await scene.ready(kinds.RESOURCE_POOL, "p", seconds=20)


async def silence(scene):
    """Have each watch be silent once, for as long as the test lasts."""
    scene.proxy.begin_faults()
    asked = set()

    def is_first(request):
        is_new = is_watch(request) and request.plural not in asked
        asked.update({request.plural} if is_new else ())
        return is_new

    rule = scene.proxy.rule(Rule(is_first, Silence(600), times=100))
    scene.proxy.cut_off(OPERATOR)
    await eventually("the watches to be silent", lambda: rule.hits >= WATCHED_KINDS - 2, seconds=20)


async def test_what_is_deleted_while_nobody_watches_is_forgotten(scene):
    await scene.pool("p")
    for name in ("kept", "lost"):
        await scene.group(name, pools=[{"name": "p"}])
        await scene.ready(WORKER_GROUP, name)
    uid = (await scene.get(WORKER_GROUP, "lost"))["metadata"]["uid"]
    scene.proxy.open_gap(OPERATOR, "workergroups")
    await scene.delete(WORKER_GROUP, "lost")
    await eventually("the group to be gone", lambda: is_gone(scene, "lost"))
    scene.proxy.close_gaps()

    def groups():
        return {rank.name.uid for rank in scene.world.live_ranks("p")}

    await eventually("its ranks to end", lambda: uid not in groups())
    assert len(groups()) == 1


async def is_gone(scene, name):
    return await scene.api.get(WORKER_GROUP, scene.namespace, name) is None


@pytest.fixture
def odd(access, runner, scene):
    """A namespace that the scene's operator serves, too; the harness reads nothing of it."""
    namespace = f"{scene.namespace}-odd"
    runner.run(scene.api.create_namespace(namespace))
    runner.run(scene.stop_operator())
    scene.namespaces.append(namespace)
    scene.start_operator()
    yield namespace
    runner.run(scene.api.delete_namespace(namespace))


@pytest.mark.parametrize(
    "args",
    ["[" * 1_200 + "]" * 1_200, "[" * 9_900 + "]" * 9_900, f"[{'{},' * 400_000}0]"],
    ids=["deep", "deepest", "objects"],
)
async def test_what_users_write_keeps_nobody_else_from_being_served(scene, odd, args):
    """G2, G11."""
    group = json.dumps(scene_group(odd, "odd", worker={"class": "train.Trainer", "args": ["ARGS"]}))
    await scene.api.create_text(WORKER_GROUP, odd, group.replace('"ARGS"', args))
    await scene.pool("p")
    await scene.group("p")
    await scene.ready(WORKER_GROUP, "p")
    await scene.stop_operator()
    scene.start_operator()
    await scene.group("q", pools=[{"name": "p"}])
    await scene.ready(WORKER_GROUP, "q", seconds=20)
    assert scene.operator.is_alive
