"""Ranks of a WorkerGroup that are replaced by a newer incarnation's, and the drivers that had attached to them."""

from __future__ import annotations

import time

import numpy as np
import pytest
import ray

import workergroups
from tests.ray.library.replaceable import Sleeper, in_thread
from workergroups import (
    DataProto,
    Dispatch,
    GroupNotFoundError,
    IncarnationReplacedError,
    RankDiedError,
    RayClassWithInitArgs,
    Worker,
    attach,
    register,
)
from workergroups.announcements import incarnations
from workergroups.naming import NAMESPACE, RankName
from workergroups.ray_private import key_value_store
from workergroups.single_controller.ray.ranks import create_ranks

pytestmark = pytest.mark.usefixtures("local_ray")


class Dozer(Worker):
    """An asyncio actor."""

    @register(Dispatch.ONE_TO_ALL)
    async def sleep(self):
        import asyncio

        await asyncio.sleep(600)


def test_an_attached_group_knows_its_incarnation(trainer):
    trainer.start(3)
    assert attach(trainer.name).incarnation == 3


def test_the_announced_incarnation_is_waited_for_though_an_older_one_is_complete(trainer):
    trainer.start(1)
    trainer.announce(2)
    with pytest.raises(GroupNotFoundError, match=r"after 0\.3 s, no ranks of group .* are there \(incarnation 2\)"):
        attach(trainer.name, timeout=0.3)
    old = trainer.ranks
    trainer.start(2)
    assert attach(trainer.name).incarnation == 2
    for rank in old:
        ray.kill(rank)


def test_an_unreadable_record_counts_as_none(trainer):
    trainer.start(1)
    key_value_store.put(incarnations._KV_NAMESPACE, trainer.name, b"\xff")
    assert attach(trainer.name).incarnation == 1


def test_calls_in_flight_and_later_ones_say_that_the_ranks_were_replaced(trainer):
    trainer.start(1)
    trainer.announce(1)
    group = attach(trainer.name)
    assert group.where() == [0, 1]
    refs = group.execute_all_async("sleep")
    future = group.sleep_in_background(DataProto.from_single_dict({"x": np.zeros(2)}))
    calls = [
        in_thread(group.sleep),
        in_thread(group.sleep_on_rank_zero),
        in_thread(lambda: group.execute_all_sync("sleep")),
        in_thread(lambda: group.execute_rank_zero_sync("sleep")),
        in_thread(lambda: workergroups.get(refs)),
        in_thread(future.get),
    ]
    trainer.replace(2)
    errors = [error() for error in [*calls, in_thread(group.where), in_thread(lambda: workergroups.get(refs[1]))]]
    assert [type(error) for error in errors] == [IncarnationReplacedError] * 8
    assert {(error.group, error.incarnation, error.current) for error in errors} == {(trainer.name, 1, 2)}
    for words in (
        f"the ranks of WorkerGroup {trainer.name!r} were replaced",
        "incarnation 1, and incarnation 2 is current",
        "in memory is gone",
        "group.renew() waits for the new ranks",
    ):
        assert words in str(errors[0])
    again = attach(trainer.name, newer_than=errors[0].incarnation)
    assert again.incarnation == 2
    assert again.where() == [0, 1]


def test_calls_of_async_methods_report_it_too(trainer):
    trainer.rank_class = RayClassWithInitArgs(Dozer)
    trainer.start(1)
    trainer.announce(1)
    error = in_thread(attach(trainer.name).sleep)
    time.sleep(0.5)
    trainer.replace(2)
    assert isinstance(error(), IncarnationReplacedError)


def test_a_group_that_was_recreated_counts_as_newer_though_its_number_is_lower(trainer):
    trainer.start(3)
    group = attach(trainer.name)
    trainer.replace(1, uid="uid2")
    with pytest.raises(IncarnationReplacedError, match=r"deleted and recreated.*renew") as replaced:
        group.where()
    assert replaced.value.current == 1
    assert attach(trainer.name, newer_than=3).where() == [0, 1]


@pytest.mark.parametrize("announced", [True, False], ids=["announced", "not-announced"])
def test_waiting_for_a_newer_incarnation_says_what_is_there_instead(trainer, announced):
    trainer.start(1)
    if announced:
        trainer.announce(1)
    attach(trainer.name)
    with pytest.raises(
        GroupNotFoundError,
        match=r"no incarnation newer than 1 yet: 2 of 2 ranks of group .* are there \(incarnation 1\)",
    ):
        attach(trainer.name, newer_than=1, timeout=0.3)


def test_a_rank_that_died_without_being_replaced_is_only_dead(trainer):
    trainer.start(1)
    trainer.announce(1)
    group = attach(trainer.name)
    ray.kill(trainer.ranks[1])
    with pytest.raises(RankDiedError, match="rank 1 of 2") as death:
        group.where()
    assert type(death.value) is RankDiedError
    assert "killed by `ray.kill`" in death.value.cause


def test_ranks_that_end_while_they_are_looked_up_are_looked_up_again(trainer, monkeypatch):
    trainer.start(1)
    get_actor = ray.get_actor
    failures = iter([ValueError("Failed to look up actor")] * 2)

    def sometimes(*args, **kwargs):
        if error := next(failures, None):
            raise error
        return get_actor(*args, **kwargs)

    monkeypatch.setattr(ray, "get_actor", sometimes)
    assert attach(trainer.name).where() == [0, 1]


def test_rank_zero_that_ends_before_it_says_where_the_ranks_meet_is_waited_for(trainer, monkeypatch):
    trainer.start(1)
    from_detached = workergroups.RayWorkerGroup.from_detached
    calls = []

    def once_replaced(**kwargs):
        calls.append(kwargs)
        if len(calls) == 1:
            trainer.replace(2)
            raise workergroups.RendezvousTimeoutError("rank 0 died before it published its address")
        return from_detached(**kwargs)

    monkeypatch.setattr(workergroups.RayWorkerGroup, "from_detached", once_replaced)
    assert attach(trainer.name).incarnation == 2


def test_a_role_of_an_attached_group_reports_it_too(trainer_pool):
    first, second = (RayClassWithInitArgs(Sleeper) for _ in range(2))
    both = workergroups.create_colocated_worker_cls({"actor": first, "critic": second})
    names = [str(RankName("roles", "uid1", 1, rank, 2)) for rank in range(2)]
    ranks = create_ranks(both, trainer_pool.seats(), names=names, namespace=NAMESPACE)
    actor = attach("roles").spawn({"actor"})["actor"]
    assert actor.incarnation == 1
    incarnations.announce("roles", "uid1", 2)
    for rank in ranks:
        ray.kill(rank)
    with pytest.raises(IncarnationReplacedError, match="incarnation 1, and incarnation 2"):
        actor.where()
