"""A reconcile reads everything again if the agent's Lease has news meanwhile."""

import asyncio
import json
from types import SimpleNamespace

import pytest

from tests.unit.operator.make import KEY, child, observed
from tests.unit.virtual_time import now, run
from workergroups_api.children import CHILD_KINDS
from workergroups_api.manifest import RAY_CLUSTER
from workergroups_common.bounded_json import ExceededLimit, parse
from workergroups_kube import OBJECT_LIMITS, RefusedObject
from workergroups_operator import observe
from workergroups_operator.heartbeats import Heartbeats
from workergroups_operator.membership import Membership
from workergroups_operator.timings import Timings


def lease(count, session):
    return {"metadata": {}, "spec": {"renewTime": str(count), "holderIdentity": session}}


@pytest.fixture
def readings(monkeypatch):
    """Return how often a reconcile reads if the Lease changes in this way during each reading."""

    def count(*sessions):
        beats, read = Heartbeats(Timings()), []
        beats.note(KEY, lease(0, "s"))

        async def read_once(*_):
            read.append(None)
            if len(read) <= len(sessions):
                beats.note(KEY, lease(len(read), sessions[len(read) - 1]))
            return observed(pods=())

        monkeypatch.setattr(observe, "_read", read_once)
        asyncio.run(observe.observe(None, Membership({}, {}, {}), beats, KEY))
        return len(read)

    return count


@pytest.mark.parametrize(
    ("sessions", "times"),
    [
        ((), 1),
        (("s",), 1),
        (("t",), 2),
        ((None,), 2),
        (("t", "t"), 2),
        (("t", "u"), 3),
    ],
)
def test_news_of_the_lease_make_a_turn_read_again(readings, sessions, times):
    assert readings(*sessions) == times


def test_a_lease_that_somebody_edits_all_the_time_does_not_stop_the_turn(readings):
    assert readings(*map(str, range(10))) == observe.MAX_READINGS


class Blown:
    """Has one object, with so many values."""

    def __init__(self, kind, count):
        self._kind = kind
        self._text = json.dumps({"data": dict.fromkeys(map(str, range(count)))}).encode()

    async def get(self, kind, namespace, name, *, limits):
        try:
            return parse(self._text, limits) if kind is self._kind else None
        except ExceededLimit as error:
            raise RefusedObject(str(error), self._text) from None


@pytest.mark.parametrize("kind", CHILD_KINDS, ids=lambda kind: kind.kind)
def test_an_object_of_ours_that_somebody_has_blown_up_is_refused_before_it_is_built(kind):
    most = OBJECT_LIMITS if kind is RAY_CLUSTER else observe.CHILD_LIMITS
    assert asyncio.run(observe._children(Blown(kind, most.values - 2), KEY))
    with pytest.raises(observe.OversizedChild, match=f"{kind.kind} .* may have {most.values}"):
        asyncio.run(observe._children(Blown(kind, most.values), KEY))


def complaint(latest):
    """What a turn that lacks pods knows of KubeRay's complaints, from a client that answers like this."""

    async def scenario():
        lacks_pods = observed(pods=(), children=child("RayCluster", "actors"))
        seen = await observe._with_signs(SimpleNamespace(latest=latest), Heartbeats(Timings()), lacks_pods)
        assert now() <= 1.0
        return seen.complaint

    return run(scenario())


def test_where_pods_are_missing_kuberays_latest_warning_is_known():
    async def latest(_kind, _namespace, make, _moment, field_selector):
        assert field_selector == "involvedObject.uid=uid-RayCluster,type=Warning"
        return make({"type": "Warning", "message": "exceeded quota"})

    assert complaint(latest) == "exceeded quota"


@pytest.mark.parametrize("error", [None, TimeoutError, PermissionError])
def test_no_status_waits_for_kuberays_events_or_needs_them(error):
    async def latest(*_, **__):
        if error is not None:
            raise error
        await asyncio.Event().wait()

    assert complaint(latest) is None
