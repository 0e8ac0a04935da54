"""What the executor removes from the GCS's key-value store."""

import pytest

from tests.unit.agent.ray_world import group, plan, rank, state
from workergroups.announcements.runs import RunRecord, RunStep
from workergroups.naming import RankName
from workergroups.ray_private import key_value_store
from workergroups_agent.executor.act import ActionRunner


@pytest.fixture
def deleted(monkeypatch):
    """The keys that were deleted, by namespace."""
    keys = []
    monkeypatch.setattr(key_value_store, "delete", lambda namespace, name: keys.append((namespace, name)))
    return keys


def first(incarnation, state="DEAD", uid="uid-g"):
    return rank(0, state, name=RankName("g", uid, incarnation, 0, 4))


@pytest.mark.parametrize(
    ("ranks", "records"),
    [
        pytest.param([first(1)], ["actor-0"], id="the incarnation was replaced"),
        pytest.param([first(2)], [], id="the rank died, and its incarnation is still the current one"),
        pytest.param([first(1, "ALIVE")], [], id="it is being ended"),
        pytest.param([first(2, uid="uid-before")], ["actor-0"], id="the group was deleted and created again"),
        pytest.param([rank(1, "DEAD", name=RankName("g", "uid-g", 1, 1, 4))], [], id="only rank 0 publishes a record"),
    ],
)
def test_the_record_of_an_ended_incarnation_is_removed_once(deleted, ranks, records):
    runner = ActionRunner(None)
    for _ in range(2):
        runner.forget_but(plan(group(incarnation=2)), state(ranks=ranks))
    assert deleted == [("workergroups", actor_id) for actor_id in records]


@pytest.mark.parametrize(
    ("incarnation", "rank_state", "is_removed"), [(1, "DEAD", False), (2, "DEAD", True), (2, "ALIVE", False)]
)
def test_what_a_rank_has_recorded_of_its_run_is_removed_when_another_incarnation_is_there(
    deleted, incarnation, rank_state, is_removed
):
    there = state(ranks=[rank(1, rank_state)], runs={1: RunRecord(RunStep.RETURNED)})
    ActionRunner(None).forget_but(plan(group(incarnation=incarnation, runs=True)), there)
    assert deleted == ([("workergroups-runs", "actor-1")] if is_removed else [])


def test_what_a_dead_rank_has_recorded_of_its_weights_is_removed_once(deleted):
    runner = ActionRunner(None)
    for _ in range(2):
        runner.forget_but(plan(group()), state(ranks=[rank(0), rank(1, "DEAD"), rank(2, "DEAD")], weights=(0, 1)))
    assert deleted == [("workergroups-weights", "actor-1")]
