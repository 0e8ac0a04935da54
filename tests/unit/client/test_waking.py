"""Waking a pool that the operator has suspended since nobody used it, and what else users do with such a pool."""

import itertools

import pytest
from typer.testing import CliRunner

from tests.unit.client.fake_cluster import FakeCluster, condition, group, pool
from workergroups_api.names import WAKE_AT_ANNOTATION
from workergroups_cli import lifecycle_commands, progress, scale_command
from workergroups_cli.app import app
from workergroups_client.errors import DeadlineError
from workergroups_client.handles.pool import Pool
from workergroups_client.objects.names import find
from workergroups_client.objects.suspending import wake


class Sleeping(FakeCluster):
    """A pool that becomes ready some looks after the operator has seen the annotation."""

    def __init__(self, *, is_seen=True, **spec):
        super().__init__(pool("ppo", **spec))
        self.annotations, self.edits, self._is_seen, self._looks = [], [], is_seen, itertools.count()

    def edit(self, kind, name, spec):
        self.edits.append(spec)

    def annotate(self, kind, name, annotation, value):
        self.annotations.append((kind.kind, name, annotation, value))

    def get(self, kind, name):
        found = super().get(kind, name)
        # Ready is that of before: the operator may be about to suspend the pool.
        is_ready, is_seen = next(self._looks) > 8, bool(self.annotations) and self._is_seen
        ready = condition("Ready", "True" if is_ready or not is_seen else "False", "HeadStarting", "wait")
        status = {"conditions": [ready], "observedGeneration": 2, "deadline": "2026-01-01T00:00:00Z"}
        return found | {"status": status | {"idle": {"wakeAt": self.annotations[0][3]} if is_seen else {}}}


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """Time passes only while the client waits."""
    now = itertools.count()
    monkeypatch.setattr("workergroups_client.waiting.time.monotonic", lambda: float(next(now)))
    monkeypatch.setattr("workergroups_client.waiting.time.sleep", lambda _: None)


def test_it_waits_until_the_operator_has_seen_the_call_and_the_pool_is_ready():
    cluster, told = Sleeping(idle={"afterSeconds": 60}), []
    wake(cluster, find(cluster, "pool/ppo"), told.append)
    assert [each[:3] for each in cluster.annotations] == [("ResourcePool", "ppo", WAKE_AT_ANNOTATION)]
    assert told[0] == "waking pool ppo"
    assert told[-1] == "pool ppo: ready"


@pytest.mark.parametrize("spec", [{}, {"suspend": True, "idle": {"afterSeconds": 60}}])
def test_a_pool_that_only_its_user_suspends_is_left_as_it_is(spec):
    cluster = Sleeping(**spec)
    wake(cluster, find(cluster, "pool/ppo"), lambda _: None)
    assert cluster.annotations == []


def test_an_operator_that_is_away_is_reported():
    cluster = Sleeping(is_seen=False, idle={"afterSeconds": 60})
    with pytest.raises(DeadlineError, match="the operator has not seen within 60 s that pool ppo is wanted"):
        wake(cluster, find(cluster, "pool/ppo"), lambda _: None)


def test_resume_wakes_it_and_returns_when_the_operator_has_seen_that():
    cluster = Sleeping(idle={"afterSeconds": 60})
    Pool("pool/ppo", cluster).resume()
    assert (cluster.edits, len(cluster.annotations)) == ([{"suspend": False}], 1)


class Idle(Sleeping):
    """Is suspended for being idle when one first looks."""

    def get(self, kind, name):
        found = super().get(kind, name)
        idle = {"conditions": [condition("Ready", "False", "Idle", "not used")], "observedGeneration": 2}
        return found if self.annotations else found | {"status": idle}


@pytest.mark.parametrize("words", [["scale", "pool/ppo", "4"], ["resume", "pool/ppo"]])
def test_it_is_scaled_without_waiting_and_resumed_before_one_waits(words, monkeypatch):
    cluster, waited = Idle(idle={"afterSeconds": 60}), []
    for module in (lifecycle_commands, scale_command):
        monkeypatch.setattr(module, "Cluster", lambda *_: cluster)
    monkeypatch.setattr(progress, "wait_until_ready", lambda *_: waited.append(len(cluster.annotations)) or [])
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    if words[0] == "resume":
        assert waited == [1]
        return
    assert (waited, cluster.annotations, cluster.edits) == ([], [], [{"nodes": 4}])
    assert "workergroups resume pool/ppo -n team --context lab" in done.output


def test_a_group_on_two_pools_is_not_scaled(monkeypatch):
    cluster = FakeCluster(pool("a"), pool("b"), group("both", pools=[{"name": "a"}, {"name": "b"}]))
    monkeypatch.setattr(scale_command, "Cluster", lambda *_: cluster)
    done = CliRunner().invoke(app, ["scale", "both", "4"])
    assert done.exit_code == 1
    assert "group both is on 2 pools: name the one to scale: a, b" in str(done.exception)
