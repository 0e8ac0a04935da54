"""Handles of drivers that go on with the next incarnation of a WorkerGroup."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import ray

import workergroups
from tests.ray.library.replaceable import Sleeper, in_thread, is_dispatching, may_dispatch
from workergroups import (
    DataProto,
    GroupClosedError,
    GroupFailedError,
    GroupNotFoundError,
    IncarnationReplacedError,
    LateCallError,
    NotAttachedError,
    RankDiedError,
    RayClassWithInitArgs,
    RayWorkerGroup,
    attach,
    create_colocated_worker_cls,
)
from workergroups.announcements import incarnations
from workergroups.waiting import poll

pytestmark = pytest.mark.usefixtures("local_ray")


@pytest.fixture
def group(trainer):
    trainer.start(1)
    trainer.announce(1)
    return attach(trainer.name)


def kill_rank(group, rank):
    """As a node does when it runs out of memory; return what the next call raises."""
    os.kill(group.pid()[rank], signal.SIGKILL)
    with pytest.raises(RankDiedError) as death:
        group.where()
    return death.value


def test_a_killed_rank_is_named_and_the_handle_goes_on_with_the_next_incarnation(trainer, group):
    death = kill_rank(group, 1)
    assert (death.rank, death.reason, death.incarnation, death.group) == (1, "ProcessDied", 1, trainer.name)
    assert f"rank 1 of 2 of WorkerGroup {trainer.name!r} (incarnation 1, pid " in str(death)
    assert str(death).splitlines()[-1].startswith("group.renew() waits for the ranks that replace dead ones")
    threading.Timer(1, trainer.replace, [2]).start()
    held, method = group, group.where
    assert group.renew(timeout=30) is held
    assert (group.incarnation, group.where(), method()) == (2, [0, 1], [0, 1])
    assert group.worker_names == [f"{trainer.name}/uid1/2/{rank}-of-2" for rank in range(2)]
    assert group.resource_pool.local_rank_list() == [0, 1]


def test_nothing_is_waited_for_while_all_ranks_are_alive(group):
    before = group.workers
    assert group.renew(timeout=0) is group
    assert group.workers is before


def test_a_later_incarnation_that_is_complete_is_taken_at_once(trainer, group):
    trainer.replace(2)
    trainer.replace(3)
    attach(trainer.name).where()  # its processes are up
    assert group.renew(timeout=5).incarnation == 3
    assert group.where() == [0, 1]


def test_an_incarnation_that_dies_before_it_is_seen_is_passed_over(trainer, group):
    trainer.replace(2)
    kill_rank(attach(trainer.name), 0)
    with ThreadPoolExecutor() as threads:
        renewed = threads.submit(group.renew, timeout=30)
        time.sleep(1)
        assert not renewed.done()
        trainer.replace(3)
        assert renewed.result(timeout=30).incarnation == 3


def test_an_incarnation_that_dies_once_the_handle_has_it_is_renewed_again(trainer, group):
    for incarnation in (2, 3, 4):
        assert kill_rank(group, 0).incarnation == incarnation - 1
        trainer.replace(incarnation)
        assert group.renew(timeout=30).incarnation == incarnation


def test_a_group_that_was_deleted_and_recreated_is_a_next_incarnation(trainer, group):
    trainer.replace(5)
    group.renew()
    trainer.replace(1, uid="uid2")
    with pytest.raises(IncarnationReplacedError, match="deleted and recreated"):
        group.where()
    assert group.renew(timeout=30).worker_names[0] == f"{trainer.name}/uid2/1/0-of-2"
    trainer.replace(2, uid="uid2")
    assert group.renew(timeout=30).where() == [0, 1]


def test_waiting_in_vain_says_what_is_there(trainer, group):
    kill_rank(group, 1)
    with pytest.raises(
        GroupNotFoundError,
        match=r"after 0\.5 s, there is no incarnation newer than 1 yet: 1 of 2 ranks .*\(incarnation 1\); see the Work",
    ):
        group.renew(timeout=0.5)
    trainer.replace(2)  # the handle is as good as before
    assert group.renew(timeout=30).where() == [0, 1]


def test_nothing_is_waited_for_if_the_operator_has_given_up(trainer, group):
    kill_rank(group, 1)
    incarnations.announce(trainer.name, "uid1", 1, is_final=True)
    with pytest.raises(GroupFailedError, match="allows no more restarts: incarnation 1 is the last"):
        group.renew(timeout=600)
    trainer.replace(2)  # somebody has restarted it
    assert group.renew(timeout=30).where() == [0, 1]


def test_results_of_the_former_ranks_never_come_from_the_new_ones(trainer, group):
    refs = group.execute_all_async("sleep")
    future = group.sleep_in_background(DataProto.from_single_dict({"x": np.zeros(2)}))
    trainer.replace(2)
    group.renew(timeout=30)
    for wait in (lambda: workergroups.get(refs), future.get, lambda: group.read(future)):
        with pytest.raises(IncarnationReplacedError) as replaced:
            wait()
        assert (replaced.value.incarnation, replaced.value.current) == (1, 2)


def test_a_future_of_a_killed_rank_names_it_also_as_an_argument(trainer, group):
    future = group.sleep_in_background(DataProto.from_single_dict({"x": np.zeros(2)}))
    other = attach(trainer.name)
    ray.kill(trainer.ranks[1])
    for wait in (future.get, lambda: other.read(future)):
        with pytest.raises(RankDiedError) as death:
            wait()
        assert (type(death.value), death.value.rank, death.value.reason) == (RankDiedError, 1, "Removed")


def test_a_call_that_is_being_made_does_not_reach_the_new_ranks(trainer, group):
    is_dispatching.clear()
    may_dispatch.clear()
    call = in_thread(group.count)
    assert is_dispatching.wait(30)
    trainer.replace(2)
    group.renew(timeout=30)
    may_dispatch.set()
    assert isinstance(call(), IncarnationReplacedError)
    assert group.count() == [1, 1]


def test_ranks_can_be_replaced_again_and_again_while_other_threads_call(trainer, group):
    ended, answers, errors = threading.Event(), [], []

    def call():
        while not ended.is_set():
            try:
                answers.append(group.where())
            except RankDiedError as error:
                errors.append(error)

    with ThreadPoolExecutor() as threads:
        calls = [threads.submit(call) for _ in range(3)]
        for incarnation in (2, 3, 4):
            trainer.replace(incarnation)
            renewals = [threads.submit(group.renew, timeout=30) for _ in range(2)]
            assert {renewal.result(timeout=30).incarnation for renewal in renewals} == {incarnation}
            count = len(answers)
            assert poll(lambda count=count: len(answers) >= count + 10, timeout=30)
        ended.set()
        for ending in calls:
            ending.result(timeout=30)
    assert all(answer == [0, 1] for answer in answers)
    assert errors
    assert {type(error) for error in errors} <= {RankDiedError, IncarnationReplacedError}


DRIVER = """
import sys
from workergroups import RankDiedError, attach

group = attach(sys.argv[1], timeout=30)
print("attached", flush=True)
try:
    group.sleep()
except RankDiedError as error:
    print(error.incarnation, group.renew(timeout=30).incarnation, group.where())
"""


def test_each_of_two_drivers_renews_its_own_handle(trainer, group):
    environment = os.environ | {"RAY_ADDRESS": ray.get_runtime_context().gcs_address}
    command = [sys.executable, "-c", DRIVER, trainer.name]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout.readline() == "attached\n"
        trainer.replace(2)
        assert group.renew(timeout=30).where() == [0, 1]
        assert driver.communicate(timeout=60)[0] == "1 2 [0, 1]\n"


def test_a_deadline_holds_for_the_new_ranks_too_and_ends_with_its_block(trainer, group):
    with group.deadline(1):
        trainer.replace(2)
        group.renew(timeout=30)
        with pytest.raises(LateCallError):
            group.sleep()
    assert group._for_one_call()._handle.call_timeout is None


def test_ranks_that_a_dead_one_leaves_behind_do_not_hide_its_death(group):
    assert group.where() == [0, 1], "both are up"
    with pytest.raises(RankDiedError) as death:
        group.meet()
    assert death.value.rank == 1
    assert "connection closed by peer" in str(death.value.__cause__)


@pytest.fixture
def roles(trainer):
    trainer.rank_class = create_colocated_worker_cls({name: RayClassWithInitArgs(Sleeper) for name in ("one", "two")})
    trainer.start(1)
    trainer.announce(1)
    return attach(trainer.name)


def test_the_handles_of_all_roles_are_renewed_with_any_of_them(trainer, roles):
    handles = roles.spawn(["one", "two"])
    roles.fuse(["two"])
    trainer.replace(2)
    assert handles["one"].renew(timeout=30) is handles["one"]
    assert [each.incarnation for each in (roles, roles.two, *handles.values())] == [2] * 4
    assert [each.where() for each in (roles.two, *handles.values())] == [[0, 1]] * 3
    handles["one"].close()
    with pytest.raises(GroupClosedError, match="spawn it again"):
        handles["one"].where()
    assert handles["two"].where() == [0, 1]


def test_the_handle_of_a_role_that_the_next_incarnation_lacks_is_closed(trainer, roles):
    handles = roles.spawn(["one", "two"])
    trainer.rank_class = create_colocated_worker_cls({"one": RayClassWithInitArgs(Sleeper)})
    trainer.replace(2)
    assert roles.renew(timeout=30).incarnation == 2
    assert handles["one"].where() == [0, 1]
    with pytest.raises(GroupClosedError, match="role 'two' is closed, so 'where' cannot be called; spawn it again"):
        handles["two"].where()
    with pytest.raises(ValueError, match="no role 'two' with registered methods; it has one"):
        roles.spawn(["two"])


def test_a_group_that_this_program_created_cannot_be_renewed(trainer_pool):
    with RayWorkerGroup(trainer_pool, RayClassWithInitArgs(Sleeper), name_prefix="mine") as group:
        death = kill_rank(group, 0)
        assert (death.rank, death.group, death.incarnation) == (0, "mine", None)
        assert str(death).endswith("close the group, and create it again")
        with pytest.raises(NotAttachedError, match=r"'mine' was not returned by workergroups\.attach\(\)"):
            group.renew()


def test_a_closed_handle_cannot_be_renewed(group):
    group.close()
    with pytest.raises(GroupClosedError, match="attach to it again"):
        group.renew()


def test_a_handle_that_was_sent_to_another_process_can_be_renewed_there(trainer, group):
    @ray.remote(num_cpus=0)
    def renew(group):
        return group.renew(timeout=30).where(), group.incarnation

    trainer.replace(2)
    assert ray.get(renew.remote(group)) == ([0, 1], 2)
