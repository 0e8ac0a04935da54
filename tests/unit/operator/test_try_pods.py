"""What is asked about pods, how often, and that no reconcile waits for it, in virtual time."""

import asyncio
from dataclasses import replace
from itertools import pairwise

import pytest

from tests.unit.operator.make import KEY, NODE_GROUP, TIMINGS, api_error, built, observed, pool
from tests.unit.virtual_time import now, run
from workergroups_api.conditions import Explanation
from workergroups_operator.membership import ClusterKey
from workergroups_operator.try_pods import NAMESPACE_QUESTIONS, PENDING, PodTrials, Trial, not_kept
from workergroups_operator.work_queue import Result, WorkQueue


class ApiServer:
    """Admission that takes some seconds, and refuses what it is told to refuse."""

    def __init__(self, seconds=0.01):
        self.seconds = seconds
        self.refuses = set()
        self.asked = []
        self.at_once = {}
        self.most = 0

    async def create(self, manifest, *, dry_run):
        assert dry_run
        self.asked.append(now())
        namespace = manifest["namespace"]
        self.at_once[namespace] = self.at_once.get(namespace, 0) + 1
        self.most = max(self.most, *self.at_once.values())
        await asyncio.sleep(self.seconds)
        self.at_once[namespace] -= 1
        if manifest["name"] == "odd":
            raise UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed")
        if manifest["name"] in self.refuses:
            raise api_error(403, "exceeded quota")


def trial(name="a", namespace="team"):
    return Trial({"name": name, "namespace": namespace})


def new(name):
    """About a pod that the live RayCluster does not have yet."""
    return replace(trial(name), ray_cluster={"kind": "RayCluster"})


class Operator:
    """Gives a cluster a reconcile when it is enqueued, and when it has to look again."""

    def __init__(self, api, trials, key=KEY):
        self.trials = trials
        self.answers = []
        self.enqueued = asyncio.Event()
        self.pods = PodTrials(api, lambda _: self.enqueued.set(), TIMINGS)
        self.key = key

    async def turns(self, until):
        while now() < until:
            self.enqueued.clear()
            found = await self.pods.answers(self.key, self.trials)
            self.answers.append((round(now(), 2), {name: why.reason for name, why in found.refused.items()}))
            try:
                async with asyncio.timeout(min(found.look_again_seconds, until - now())):
                    await self.enqueued.wait()
            except TimeoutError:
                continue

    async def serve(self, until):
        await self.turns(until)
        await self.pods.writes.close()
        return self.answers


def served(api, trials, until):
    """When the cluster has turns, and which of its pods are refused then."""

    async def scenario():
        return await Operator(api, trials).serve(until)

    return run(scenario())


def test_a_quick_answer_is_known_in_the_same_turn():
    api = ApiServer()
    api.apply = lambda *_, **__: asyncio.sleep(0.0)
    api.refuses = {"a"}
    turns = served(api, {"A": new("a"), "B": new("b"), "head": trial("a")}, until=1)
    assert turns == [(0.02, {"A": "PodsRefused", "head": "PodsRefused"})]


def test_of_a_live_node_group_the_next_turn_decides_which_reads_the_pods_after_the_refusal():
    api = ApiServer()
    api.refuses = {"a"}
    turns = served(api, {"A": trial("a"), "B": trial("b")}, until=1)
    assert turns == [(0.01, {"A": "AdmissionPending"}), (0.01, {"A": "PodsRefused"})]
    assert len(api.asked) == 2


def test_a_pod_about_which_the_operator_cannot_ask_is_reported_and_retried():
    turns = served(ApiServer(), {"A": new("odd")}, until=3)
    assert [refused for _, refused in turns] == [{"A": "InternalError"}] * 2


def test_no_turn_waits_for_a_slow_answer_and_the_cluster_gets_another_when_it_comes():
    api = ApiServer(seconds=10)
    assert served(api, {"A": trial()}, until=11) == [(TIMINGS.write_wait, {"A": PENDING.reason}), (10, {})]
    assert len(api.asked) == 1


def test_a_pod_that_was_accepted_in_a_raycluster_is_not_tried_by_itself_at_once():
    api = ApiServer()
    api.apply = lambda *_, **__: asyncio.sleep(0.01)

    async def scenario():
        operator = Operator(api, {"A": new("a")})
        await operator.turns(0.5)
        api.refuses = {"a"}  # The pods that KubeRay creates use up the quota.
        operator.trials = {"A": trial()}
        return await operator.serve(TIMINGS.look_again.first)

    assert all(refused == {} for _, refused in run(scenario()))
    assert len(api.asked) == 1


def test_a_refused_pod_is_retried_rarely_but_at_least_each_minute():
    api = ApiServer()
    api.refuses = {"a"}
    served(api, {"A": trial()}, until=3600)
    pauses = [round(after - before, 1) for before, after in pairwise(api.asked)]
    assert pauses[0] == pytest.approx(2, abs=0.1)
    assert pauses == sorted(pauses)
    assert pauses[-1] == pytest.approx(TIMINGS.look_again.last, abs=0.1)
    assert len(api.asked) < 3600 / TIMINGS.look_again.last + 20


def test_the_same_pod_is_not_tried_again_by_each_turn_and_another_one_is_at_once():
    api = ApiServer()

    async def scenario():
        operator = Operator(api, {})
        for trials in [{"A": trial("a")}] * 5 + [{"A": trial("b")}] * 5 + [{}, {"A": trial("b")}]:
            await operator.pods.answers(KEY, trials)
        await operator.pods.writes.close()

    run(scenario())
    assert len(api.asked) == 3


def test_a_pod_that_is_taken_at_last_is_known_to_be():
    api = ApiServer()
    api.refuses = {"a"}

    async def scenario():
        operator = Operator(api, {"A": trial()})
        asyncio.get_running_loop().call_later(1000, api.refuses.clear)
        return await operator.serve(1100)

    moment = next(moment for moment, refused in run(scenario()) if not refused)
    assert 1000 < moment <= 1000 + TIMINGS.look_again.last + 1


def test_a_webhook_gets_few_questions_of_a_namespace_at_once():
    api = ApiServer(seconds=10)

    answered = set()

    async def turn(key):
        found = await pods[0].answers(key, {"A": trial(key.name)})
        if PENDING not in found.refused.values():
            answered.add(key.name)
        return Result(found.look_again_seconds)

    pods = []

    def pods_seconds(namespace):
        return pods[0].writes.seconds(namespace)

    async def scenario():
        queue = WorkQueue(turn, pods_seconds, TIMINGS)
        pods.append(PodTrials(api, queue.add, TIMINGS))
        for number in range(100):
            queue.add(ClusterKey("team", f"c{number}"))
        await asyncio.sleep(600)
        await queue.close()

    run(scenario())
    assert len(answered) == 100
    assert api.most == NAMESPACE_QUESTIONS


@pytest.mark.parametrize(("kept", "refused"), [("an older one", []), ("the same", [NODE_GROUP])])
def test_a_refused_template_is_refused_where_no_other_one_can_be_kept(kept, refused):
    """Its roll cannot begin, and without a live template the RayCluster would get the refused one."""

    def template(digest):
        return {"metadata": {"annotations": {"workergroups.dev/template": digest}}}

    blocked = {NODE_GROUP: Explanation("PodsRefused", "no")}
    templates = replace(
        built(observed(pools=(pool(),))),
        workers={NODE_GROUP: template(kept)},
        asked_workers={NODE_GROUP: template("the same")},
    )
    assert list(not_kept(blocked, blocked, templates)) == refused
