"""What a group does on a local Ray, whatever class its ranks have."""

from __future__ import annotations

import os
import signal
import socket
import threading

import pytest
import ray
from ray.exceptions import RayActorError

from workergroups import (
    Dispatch,
    GroupClosedError,
    RankDiedError,
    RayClassWithInitArgs,
    RayWorkerGroup,
    Worker,
    register,
    waiting,
)
from workergroups.single_controller.ray import worker_group

pytestmark = pytest.mark.usefixtures("local_ray")


class Plain:
    """No Worker, not decorated."""

    def __init__(self, start, fail_on=None, message="no model here") -> None:
        self.env_in_constructor = dict(os.environ)
        if fail_on == os.environ["RANK"]:
            raise RuntimeError(message)
        self.value = start

    def env(self, name):
        return self.env_in_constructor.get(name)

    def add(self, *numbers, **more):
        return self.value + sum(numbers) + sum(more.values())

    def echo(self, x):
        return x

    def in_main_thread(self):
        return threading.current_thread() is threading.main_thread()

    def listen_on_master_port(self):
        with socket.create_server(("", int(os.environ["MASTER_PORT"])), dualstack_ipv6=False):
            return True

    def die(self, signal_number):
        os.kill(os.getpid(), signal_number)

    @register(Dispatch.ONE_TO_ALL, blocking=False)
    def later(self, x):
        return self.value + x


@ray.remote
class Asynchronous(Worker):
    @register(Dispatch.ONE_TO_ALL)
    async def rank_plus(self, x):
        return self.rank + x


@pytest.fixture(scope="module")
def group(pool):
    with RayWorkerGroup(
        pool, RayClassWithInitArgs(Plain, start=10), name_prefix="plain", worker_env={"FLAVOUR": "sweet"}
    ) as group:
        yield group


def named_actors():
    return {actor["name"] for actor in ray.util.list_named_actors(all_namespaces=True)}


def test_constructors_see_their_rank_in_the_environment(group):
    expected = {
        "RANK": ["0", "1"],
        "WORLD_SIZE": ["2", "2"],
        "LOCAL_RANK": ["0", "0"],
        "RAY_LOCAL_RANK": ["0", "1"],
        "RAY_LOCAL_WORLD_SIZE": ["2", "2"],
        "WG_PREFIX": ["plain", "plain"],
        "FLAVOUR": ["sweet", "sweet"],
        "MASTER_ADDR": [group.master_address] * 2,
        "MASTER_PORT": [group.master_port] * 2,
    }
    assert {name: group.execute_all_sync("env", name) for name in expected} == expected


def test_the_master_port_is_kept_for_rank_zero(group):
    with pytest.raises(OSError, match="in use"), socket.socket() as other:
        other.bind(("", int(group.master_port)))
    assert group.execute_rank_zero_sync("listen_on_master_port")


def test_methods_run_in_the_main_thread_as_in_plain_ray(group):
    assert group.execute_all_sync("in_main_thread") == [True, True]


def test_lists_of_world_size_are_spread_and_anything_else_is_shared(group):
    assert group.execute_all_sync("add", [1, 2], more=[10, 20]) == [21, 32]
    assert group.execute_all_sync("echo", [1, 2, 3]) == [[1, 2, 3]] * 2
    assert group.execute_all_sync("echo", (1, 2)) == [(1, 2)] * 2
    assert group.execute_all_sync("add", 1, more=2) == [13, 13]
    assert group.execute_all_sync("add") == [10, 10]


def test_rank_zero_gets_arguments_as_they_are(group):
    assert group.execute_rank_zero_sync("echo", [1, 2]) == [1, 2]
    assert ray.get(group.execute_rank_zero("echo", 1)) == ray.get(group.execute_rank_zero_async("echo", 1))


def test_asynchronous_calls_return_object_references(group):
    assert ray.get(group.execute_all_async("add", 1)) == ray.get(group.execute_all("add", 1)) == [11, 11]
    assert ray.get(group.later(5)) == [15, 15]


def test_another_handle_finds_the_ranks_and_their_methods_by_name(group):
    other = RayWorkerGroup.from_detached(worker_names=group.worker_names)
    assert ray.get(other.later(1)) == [11, 11]
    other.close()
    assert group.execute_all_sync("add") == [10, 10]


def test_async_methods_and_decorated_classes(pool):
    with RayWorkerGroup(pool, RayClassWithInitArgs(Asynchronous)) as group:
        assert group.rank_plus(1) == [1, 2]


def test_a_method_that_nobody_has(group):
    with pytest.raises(TypeError, match="'echo': too many positional arguments"):
        group.execute_all_async("echo", 1, 2, 3)
    with pytest.raises(AttributeError, match=r"no method 'ad'; it has add, die, echo"):
        group.execute_all_sync("ad")


def test_a_method_that_is_not_registered_says_how_to_call_it(group):
    with pytest.raises(
        AttributeError, match=r"no method 'add'; it has later. Decorate 'add' with @register .*execute_all_sync\('add'"
    ):
        group.add(1)


def test_constructor_arguments_are_checked_before_anything_starts(pool):
    before = named_actors()
    with pytest.raises(TypeError, match=r"Plain\(start, .*\): got an unexpected keyword argument 'end'"):
        RayWorkerGroup(pool, RayClassWithInitArgs(Plain, 1, end=1))
    assert named_actors() == before


@pytest.mark.parametrize(
    ("worker_env", "error", "message"),
    [
        ({"WORLD_SIZE": "100", "A": "b"}, ValueError, "must not set WORLD_SIZE"),
        ({"CUDA_VISIBLE_DEVICES": "0"}, ValueError, "must not set CUDA_VISIBLE_DEVICES"),
        ({"PYTHONHOME": "/opt/python"}, ValueError, "must not set PYTHONHOME: no rank starts"),
        ({"A": 1}, TypeError, "must be strings, but A is 1"),
    ],
)
def test_worker_env_may_not_say_which_rank_a_process_is(pool, worker_env, error, message):
    with pytest.raises(error, match=message):
        RayWorkerGroup(pool, RayClassWithInitArgs(Plain, 1), worker_env=worker_env)


def test_a_group_needs_both_halves_of_the_master_address(pool):
    with pytest.raises(ValueError, match="both master_addr and master_port"):
        RayWorkerGroup(pool, RayClassWithInitArgs(Plain, 1), master_addr="10.0.0.1")


def test_a_constructor_that_raises_names_the_rank_and_the_exception(pool):
    with RayWorkerGroup(pool, RayClassWithInitArgs(Plain, 1, fail_on="1")) as group:
        with pytest.raises(
            RankDiedError, match=r"rank 1 of 2 \(pid \d+ on node .*failed in its constructor: RuntimeError: no model"
        ) as failure:
            group.execute_all_sync("add")
        assert failure.value.rank == 1
        assert failure.value.cause.endswith("RuntimeError: no model here")


def test_a_constructor_that_raises_a_long_text_is_quoted_in_part(pool):
    with RayWorkerGroup(pool, RayClassWithInitArgs(Plain, 1, fail_on="1", message="x" * 1_000_000)) as group:
        with pytest.raises(RankDiedError, match="failed in its constructor") as failure:
            group.execute_all_sync("add")
        assert len(str(failure.value)) < 200_000
        assert "RuntimeError: xxx" in failure.value.cause
        assert failure.value.cause.endswith("(of 1000000 characters)")


def test_a_dead_rank_is_named_and_a_closed_group_refuses_calls(pool):
    with RayWorkerGroup(pool, RayClassWithInitArgs(Plain, 1)) as group:
        nothing = 0
        with pytest.raises(RankDiedError, match=r"rank 1 of 2 \(pid \d+ on node .*without telling Ray") as death:
            group.execute_all_sync("die", [nothing, signal.SIGKILL])
        assert isinstance(death.value, RayActorError)
    with pytest.raises(GroupClosedError, match="'add' cannot be called"):
        group.execute_all_sync("add")


def test_closing_leaves_no_actor_and_frees_the_names(pool):
    first = RayWorkerGroup(pool, RayClassWithInitArgs(Plain, 1), name_prefix="again", detached=True)
    assert {"againPlain_0:0", "againPlain_0:1"} <= named_actors()
    first.close()
    first.close()
    assert not [name for name in named_actors() if name.startswith("again")]
    with RayWorkerGroup(pool, RayClassWithInitArgs(Plain, 2), name_prefix="again") as second:
        assert second.execute_all_sync("add") == [2, 2]


def test_ranks_that_ray_does_not_end_are_spoken_of(pool, monkeypatch):
    group = RayWorkerGroup(pool, RayClassWithInitArgs(Plain, 1), name_prefix="clinging")
    monkeypatch.setattr(waiting, "_END_TIMEOUT", 0.1)
    monkeypatch.setattr(worker_group, "all_dead", lambda actor_ids: False)
    with pytest.warns(RuntimeWarning, match=r"not ended the ranks of group 'clinging' within 0\.1 s"):
        group.close()


def test_a_name_that_is_taken_leaves_nothing_half_made(pool, group):
    with pytest.raises(ValueError, match=r"plainPlain_0:0"):
        RayWorkerGroup(pool, RayClassWithInitArgs(Plain, 1), name_prefix="plain")
    assert group.execute_all_sync("add") == [10, 10]
