"""Which error a driver gets for a rank that Ray reports as dead or out of reach, by what the GCS says of it."""

from __future__ import annotations

import gc
import weakref
from contextlib import suppress
from functools import partial

import pytest
from ray.exceptions import ActorUnavailableError, ObjectLostError, RayTaskError

from workergroups import IncarnationReplacedError, RankDiedError, RayClassWithInitArgs, RayWorkerGroup, Worker, get
from workergroups.announcements.incarnations import Incarnation
from workergroups.deaths import rank_death
from workergroups.ray_private.cluster_state import ActorState
from workergroups.ray_private.death import Death
from workergroups_api.vocabulary import RankEnd

ID = b"\x0a" * 16
ALIVE = ActorState("trainer/uid-1/3/5-of-8", "ALIVE", 7, "10.0.0.1", "node-1", 0.0)
DEAD = ActorState(
    *("trainer/uid-1/3/5-of-8", "DEAD", 7, "10.0.0.1", "node-1", 0.0),
    Death(RankEnd.NODE_LOST, "its node has died", "its node has died: it missed health checks"),
)


@pytest.fixture
def gcs(monkeypatch):
    """What the GCS answers, look by look; the last answer stays."""
    answers = []
    monkeypatch.setattr(rank_death, "actor_state", lambda _: answers.pop(0) if len(answers) > 1 else answers[0])
    monkeypatch.setattr(rank_death.incarnations, "current", lambda _: Incarnation("uid-1", 3))
    monkeypatch.setattr(rank_death, "run_on_nodes", lambda *_, **__: ["what its node knows"])
    monkeypatch.setattr(rank_death, "_UNREACHABLE", 0.2)
    return answers


def unreachable():
    return ActorUnavailableError("RpcError: keepalive watchdog timeout", ID)


def test_an_unreachable_rank_whose_node_is_lost_died_once_the_gcs_knows(gcs):
    gcs += [ALIVE, ALIVE, ALIVE, DEAD]
    error = rank_death.error_of_call(unreachable(), [])
    assert isinstance(error, RankDiedError)
    assert (error.rank, error.reason, error.group, error.incarnation) == (5, "NodeLost", "trainer", 3)
    assert error.cause == "its node has died: it missed health checks"
    assert str(error).splitlines() == [
        "rank 5 of 8 of WorkerGroup 'trainer' (incarnation 3, pid 7 on node 10.0.0.1) died: its node has died",
        "what its node knows",
        "group.renew() waits for the ranks that replace dead ones. They have nothing of what those had in memory",
    ]


def test_an_unreachable_rank_that_may_be_alive_is_named_and_so_is_what_to_do(gcs):
    gcs += [ALIVE]
    error = rank_death.error_of_call(unreachable(), [])
    assert type(error) is ActorUnavailableError
    assert error.actor_id == unreachable().actor_id
    assert "rank 5 of 8 of WorkerGroup 'trainer' (incarnation 3, pid 7 on node 10.0.0.1) does not answer" in str(error)
    assert "`workergroups restart trainer` replaces the ranks" in str(error)


def test_an_unreachable_rank_of_an_old_incarnation_was_replaced_and_nothing_is_waited_for(gcs, monkeypatch):
    gcs += [ALIVE]
    monkeypatch.setattr(rank_death, "_UNREACHABLE", 600)
    current = Incarnation("uid-1", 4, cause="rank 1: Hung: call `step` has run for more than 15 s on rank 1")
    monkeypatch.setattr(rank_death.incarnations, "current", lambda _: current)
    error = rank_death.error_of_call(unreachable(), [])
    assert isinstance(error, IncarnationReplacedError)
    assert (error.incarnation, error.current) == (3, 4)
    assert "incarnation 4 is current, since rank 1: Hung: call `step` has run for more than 15 s on rank 1. " in str(
        error
    )


@pytest.mark.parametrize(("births", "lines"), [({5: 1}, 1), ({4: 1}, 0)])
def test_a_rank_that_is_recreated_alone_died_of_what_the_operator_says(gcs, monkeypatch, births, lines):
    gcs += [DEAD]
    current = Incarnation("uid-1", 3, births=births, cause="rank 5: Hung: boom")
    monkeypatch.setattr(rank_death.incarnations, "current", lambda _: current)
    error = rank_death.error_of_call(unreachable(), [])
    assert str(error).splitlines().count("rank 5: Hung: boom") == lines


def test_nothing_is_waited_for_if_the_actor_is_no_rank(gcs, monkeypatch):
    gcs += [ActorState("mine", "ALIVE", 7, "10.0.0.1", "node-1", 0.0)]
    monkeypatch.setattr(rank_death, "poll", lambda *_, **__: pytest.fail("waited"))
    error = unreachable()
    assert rank_death.error_of_call(error, []) is error


def test_a_result_that_was_lost_with_its_node_died_with_its_rank(gcs, monkeypatch):
    gcs += [DEAD]
    monkeypatch.setattr(rank_death, "actor_of", lambda ref: ID.hex())
    error = rank_death.error_of_call(ObjectLostError("0b" * 28, None, "call site"), ["a reference"])
    assert isinstance(error, RankDiedError)
    assert (error.rank, error.reason) == (5, "NodeLost")


def test_a_lost_result_of_a_live_rank_is_only_lost(gcs, monkeypatch):
    gcs += [ALIVE]
    monkeypatch.setattr(rank_death, "actor_of", lambda ref: ID.hex())
    error = ObjectLostError("0b" * 28, None, "call site")
    assert rank_death.error_of_call(error, ["a reference"]) is error


def test_an_unreachable_rank_that_may_be_alive_does_not_hide_a_methods_exception(gcs, monkeypatch):
    gcs += [ALIVE]
    monkeypatch.setattr(rank_death, "_death_among", lambda refs: unreachable())
    error = RayTaskError("step", "Traceback", ValueError("no such column"))
    assert rank_death.error_of_call(error, []) is error


class Reference:
    """Stands for a reference to an object of Ray's."""


def of_group(refs):
    """Wait for the results of a group's method."""
    group = RayWorkerGroup(worker_handles=["rank 0"], ray_cls_with_init=RayClassWithInitArgs(Worker))
    return group._get("step", refs)


@pytest.mark.parametrize("wait", [get, of_group])
@pytest.mark.parametrize(
    "error",
    [
        unreachable,
        partial(ObjectLostError, "0b" * 28, None, ""),
        lambda: RayTaskError("step", "Traceback", ValueError("boom")).as_instanceof_cause(),
    ],
)
def test_once_an_error_has_been_handled_no_reference_of_the_call_is_left(gcs, monkeypatch, wait, error):
    def ray_get(refs, timeout=None):
        value = error()
        raise value  # Ray has it in a variable as well

    gcs += [DEAD]
    monkeypatch.setattr("ray.get", ray_get)
    monkeypatch.setattr("ray.wait", lambda refs, **_: (refs, []))
    monkeypatch.setattr(rank_death, "actor_of", lambda ref: ID.hex())
    monkeypatch.setattr(rank_death, "actor_id", lambda worker: ID.hex())
    refs = [Reference()]
    is_there = weakref.ref(refs[0])
    gc.disable()
    try:
        with suppress(RankDiedError, ValueError):
            wait(refs)
        del refs
        assert is_there() is None
    finally:
        gc.enable()
