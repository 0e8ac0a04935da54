"""Which of two processes serves: the one that holds the Lease."""

import asyncio

import aiohttp
import pytest

from tests.unit.operator.make import api_error
from tests.unit.virtual_time import now, run
from workergroups_api.manifest import LEASE
from workergroups_operator.leadership import FencedKube, Leadership, LostLeadership
from workergroups_operator.timings import Timings

TIMINGS = Timings(lead_renew=0.0, lead_look=0.0)


class Api:
    """An API server that has one Lease."""

    def __init__(self):
        self.lease, self.error, self.now, self.writes = None, None, 1000.0, 0
        self.admission_seconds, self.answer_seconds = 0.0, 0.0

    async def get(self, kind, namespace, name):
        assert (kind, namespace, name) == (LEASE, "system", "workergroups-operator")
        if self.error is not None:
            raise self.error
        return self.lease

    async def create(self, manifest):
        if self.lease is not None:
            raise api_error(409)
        await self._store(manifest)

    async def apply(self, manifest):
        await asyncio.sleep(self.admission_seconds)
        if manifest["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
            raise api_error(409)
        await self._store(manifest)

    async def _store(self, manifest):
        self.writes += 1
        self.lease = manifest | {"metadata": manifest["metadata"] | {"resourceVersion": str(self.writes)}}
        await asyncio.sleep(self.answer_seconds)

    def leadership(self, identity):
        return Leadership(self, "system", identity, TIMINGS, lambda: self.now)

    @property
    def holder(self):
        return self.lease["spec"]["holderIdentity"]


@pytest.fixture
def api():
    return Api()


def has_ended(step):
    """Whether the step ends soon, without an error."""

    async def some_turns():
        task = asyncio.ensure_future(step())
        for _ in range(20):
            await asyncio.sleep(0)
        return (task.result() is None) if task.done() else not task.cancel()

    return asyncio.run(some_turns())


def test_one_serves_until_it_ends(api):
    first, second = api.leadership("a"), api.leadership("b")
    assert has_ended(first.begin)
    assert first.is_sure
    assert not has_ended(second.begin)
    assert not second.is_sure
    asyncio.run(first.end())
    assert not first.is_sure
    assert has_ended(second.begin)
    assert (api.holder, api.lease["spec"]["leaseTransitions"]) == ("b", 1)


def test_who_waits_takes_a_lease_that_did_not_change_for_some_time(api):
    first, second = api.leadership("a"), api.leadership("b")
    assert has_ended(first.begin)
    api.now += 100.0
    # However old the Lease is: this process sees it for the first time, and clocks may differ.
    assert not has_ended(second.begin)
    api.now += TIMINGS.lead_lost - 0.1
    assert not first.is_sure
    assert not has_ended(second.begin)
    api.now += 0.1
    assert has_ended(second.begin)


def test_a_lease_that_is_renewed_is_not_taken(api):
    first, second = api.leadership("a"), api.leadership("b")
    assert has_ended(first.begin)
    for _ in range(10):
        assert not has_ended(second.begin)
        api.now += TIMINGS.lead_sure - 0.1
        assert first.is_sure
        assert not has_ended(first.keep)
    assert api.holder == "a"


def test_a_process_that_starts_again_in_its_pod_does_not_wait(api):
    assert has_ended(api.leadership("a").begin)
    assert has_ended(api.leadership("a").begin)


def test_while_the_api_server_is_away_the_same_process_serves_and_writes_nothing(api):
    first = api.leadership("a")
    assert has_ended(first.begin)
    api.error = aiohttp.ClientConnectionError()
    api.now += 60.0
    assert not has_ended(first.keep)
    assert not first.is_sure
    api.error = None
    assert not has_ended(first.keep)
    assert first.is_sure


def test_a_process_that_was_replaced_ends_and_takes_nothing_back(api):
    first, second = api.leadership("a"), api.leadership("b")
    assert has_ended(first.begin)
    assert not has_ended(second.begin)
    api.now += TIMINGS.lead_lost
    assert has_ended(second.begin)
    api.now += TIMINGS.lead_lost
    with pytest.raises(LostLeadership, match="b serves"):
        has_ended(first.keep)
    asyncio.run(first.end())
    assert api.holder == "b"


def test_of_two_that_take_it_at_once_one_gets_it(api):
    first, second = api.leadership("a"), api.leadership("b")
    api.lease = {"metadata": {"resourceVersion": "0"}, "spec": {}}

    async def both():
        tasks = [asyncio.ensure_future(each.begin()) for each in (first, second)]
        done, others = await asyncio.wait(tasks, timeout=0.05)
        for other in others:
            other.cancel()
        return len(done)

    assert asyncio.run(both()) == 1
    assert first.is_sure != second.is_sure


def test_who_is_refused_the_lease_says_so(api):
    leadership = api.leadership("a")
    api.error = api_error(403)
    assert not has_ended(leadership.begin)
    assert leadership.refusal.startswith("Lease workergroups-operator: ")
    api.error = None
    assert has_ended(leadership.begin)
    assert leadership.refusal is None


def test_nothing_is_written_while_another_process_may_serve(api):
    kube = object.__new__(FencedKube)
    kube.leadership = api.leadership("a")
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n", "uid": "u"}}
    for write in (kube.create, kube.apply, kube.delete, kube.merge_status):
        with pytest.raises(TimeoutError, match="another process may serve"):
            asyncio.run(write(pod | {"metadata": pod["metadata"] | {"resourceVersion": "1"}}))


@pytest.mark.parametrize("seconds", [2, 5, 10, 29])
def test_where_admission_delays_the_lease_the_same_process_serves_on_and_another_one_after_its_end(seconds):
    api, timings = Api(), Timings()

    async def scenario():
        first, second = (Leadership(api, "system", name, timings, now) for name in "ab")
        await first.begin()
        kept, begun = (asyncio.ensure_future(step()) for step in (first.keep, second.begin))
        await asyncio.sleep(20)
        api.admission_seconds = seconds
        # One renewal ends for want of patience, and the next one takes its time.
        await asyncio.sleep(timings.lead_sure + timings.lead_renew + seconds)
        for _ in range(300):
            await asyncio.sleep(0.5)
            assert first.is_sure
            assert not second.is_sure
        kept.cancel()
        ended = now()
        while not second.is_sure:
            await asyncio.sleep(0.1)
            assert not (first.is_sure and second.is_sure)
        await begun
        assert api.holder == "b"
        return now() - ended

    assert run(scenario()) < timings.lead_lost + timings.lead_look + 4 * seconds + 1


def test_a_process_begins_although_admission_delays_the_lease():
    api, timings = Api(), Timings()
    api.lease = {"metadata": {"resourceVersion": "0"}, "spec": {}}
    api.admission_seconds = 20

    async def scenario():
        await Leadership(api, "system", "a", timings, now).begin()
        return now()

    assert run(scenario()) < 25


async def another_renewal(api):
    writes = api.writes
    while api.writes == writes:  # noqa: ASYNC110 (in virtual time)
        await asyncio.sleep(0.1)


def test_who_gets_no_answer_does_not_rely_on_the_longer_time_of_the_lease_before():
    api, timings = Api(), Timings()

    async def scenario():
        first, second = (Leadership(api, "system", name, timings, now) for name in "ab")
        await first.begin()
        kept, begun = (asyncio.ensure_future(step()) for step in (first.keep, second.begin))
        api.admission_seconds = 20
        await asyncio.sleep(100)
        api.admission_seconds = 0
        for _ in range(2):
            await another_renewal(api)
        # The next one is known to be quick, so the Lease lasts for the usual time again; and the process is frozen.
        api.answer_seconds = 1000
        await another_renewal(api)
        kept.cancel()
        api.answer_seconds = 0
        while not second.is_sure:
            await asyncio.sleep(0.1)
            assert not (first.is_sure and second.is_sure)
        await begun

    run(scenario())
