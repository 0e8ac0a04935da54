"""Suspending pools and groups, and waiting until nothing of them is left."""

import itertools

import pytest
from typer.testing import CliRunner

from tests.unit.client.fake_cluster import FakeCluster, condition, group, pool
from workergroups_api.manifest import RESOURCE_POOL, WORKER_GROUP
from workergroups_cli import lifecycle_commands, progress
from workergroups_cli.app import app
from workergroups_client.errors import ClientError, DeadlineError
from workergroups_client.handles.group import Group
from workergroups_client.handles.pool import Pool
from workergroups_client.objects.suspending import wait_until_suspended

LEFT = ("False", "Suspending", "waiting until pod a is deleted")
DONE = ("True", "Suspended", "it is so")


class Edited(FakeCluster):
    """Remembers edits; its objects have these conditions at one look after the other."""

    def __init__(self, *objects, suspended=(DONE,), spec=None, generation=2):
        super().__init__(*objects)
        self.edits = []
        self._suspended = itertools.chain(suspended, itertools.repeat(suspended[-1]))
        self._spec = {"suspend": True} if spec is None else spec
        self._generation = generation

    def edit(self, kind, name, spec):
        self.edits.append((kind, name, spec))

    def get(self, kind, name):
        found = super().get(kind, name)
        if found is None:
            return None
        state = next(self._suspended)
        conditions = [condition("Suspended", *state)] if state else []
        status = {"conditions": conditions, "observedGeneration": self._generation}
        return found | {"spec": found["spec"] | self._spec, "status": status}


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """Time passes only while the client waits."""
    now = itertools.count()
    monkeypatch.setattr("workergroups_client.waiting.time.monotonic", lambda: float(next(now)))
    monkeypatch.setattr("workergroups_client.waiting.time.sleep", lambda _: None)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("ppo", RESOURCE_POOL), ("pool/ppo", RESOURCE_POOL), ("group/ppo", WORKER_GROUP), ("only", WORKER_GROUP)],
)
def test_a_name_is_a_pool_or_else_a_group(monkeypatch, name, kind):
    cluster = Edited(pool("ppo"), group("ppo"), group("only"))
    monkeypatch.setattr(lifecycle_commands, "Cluster", lambda *_: cluster)
    monkeypatch.setattr(progress, "wait_until_ready", lambda *_: [])
    ended = CliRunner().invoke(app, ["suspend", name])
    plain = name.rpartition("/")[2]
    assert (ended.exit_code, cluster.edits) == (0, [(kind, plain, {"suspend": True})])
    what = "pool" if kind is RESOURCE_POOL else "group"
    assert f"workergroups resume {what}/{plain} -n team --context lab" in ended.output
    assert CliRunner().invoke(app, ["resume", name]).exit_code == 0
    assert cluster.edits[1:] == [(kind, plain, {"suspend": False})]


def test_it_waits_until_nothing_is_left():
    told = []
    suspended = (None, None, LEFT, LEFT, DONE)  # the handle has the first of them
    cluster = Edited(pool("ppo"), suspended=(*suspended,))
    wait_until_suspended(cluster, Pool("ppo", cluster).target, told.append, 60)
    unseen, *left = told
    assert unseen.startswith("pool ppo: the operator has not seen it yet: check that it runs")
    assert left == ["pool ppo: waiting until pod a is deleted"] * 2


@pytest.mark.parametrize(
    ("more", "error", "words"),
    [
        ({"suspended": (LEFT,)}, DeadlineError, "within 1m0s: waiting until pod a is deleted"),
        ({"generation": 1}, DeadlineError, "the operator has not seen it yet"),
        ({"spec": {"suspend": False}}, ClientError, "it was resumed"),
    ],
)
def test_it_does_not_wait_for_ever(more, error, words):
    cluster = Edited(pool("ppo"), **more)
    with pytest.raises(error, match=words):
        wait_until_suspended(cluster, Pool("ppo", cluster).target, lambda _: None, 60)


def test_a_suspended_group_is_not_restarted():
    status = {"conditions": [condition("Ready", "False", "PoolSuspended", "pool ppo: resume it")]}
    found = Group("ppo", FakeCluster(group("ppo", status=status)))
    with pytest.raises(ClientError, match="group ppo has no ranks: pool ppo: resume it"):
        found.restart()
