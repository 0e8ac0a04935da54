"""Where a call is stuck, and why a rank is gone."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
import time

import pytest
import ray

from workergroups import (
    Dispatch,
    LateCallError,
    RankDiedError,
    RayClassWithInitArgs,
    RayResourcePool,
    RayWorkerGroup,
    Worker,
    register,
)
from workergroups.processes import in_gcs
from workergroups.ray_private.cluster_state import actor_state, unfinished_tasks
from workergroups.ray_private.gcs import Gcs
from workergroups.single_controller.ray.calls import calls_in_flight
from workergroups.waiting import poll

pytestmark = pytest.mark.usefixtures("local_ray")


class Sleeper(Worker):
    def rest(self, seconds, until=None):
        self.deep_inside(seconds, until)
        return self.rank

    def deep_inside(self, seconds, until):
        end = time.monotonic() + seconds
        while time.monotonic() < end and not (until and os.path.exists(until)):
            time.sleep(0.1)

    @register(Dispatch.ONE_TO_ALL)
    def hold_the_interpreter(self, rank, seconds):
        if rank == self.rank:
            library, mutex = ctypes.PyDLL(None), ctypes.create_string_buffer(64)  # which keeps the interpreter's lock
            until = (ctypes.c_long * 2)(int(time.time()) + seconds, 0)
            for _ in range(2):
                library.pthread_mutex_timedlock(mutex, until)
        return self.rank

    def leave(self, code):
        if code:
            os._exit(code)

    def crash(self):
        ctypes.string_at(0)

    def wait_for_another(self, kind):
        raise kind("of another actor")


@pytest.fixture(scope="module")
def group(local_ray):
    with (
        RayResourcePool([2], use_gpu=False, max_colocate_count=2) as pool,
        RayWorkerGroup(pool, RayClassWithInitArgs(Sleeper)) as group,
    ):
        group.execute_all_sync("rest", 0)
        group.stacks()  # the process that reads them is there from now on
        yield group


@pytest.fixture
def until(tmp_path):
    """A file until which ranks rest; it exists at the latest when the test is over."""
    file = tmp_path / "until"
    yield file
    file.touch()


def test_a_late_call_lists_the_ranks_and_where_they_are(group, until):
    with group.deadline(2), pytest.raises(LateCallError) as late:
        group.execute_all_sync("rest", [0, 120], [until, until])
    until.touch()
    error = late.value
    assert isinstance(error, TimeoutError)
    assert (error.method_name, error.ranks, error.seconds) == ("rest", [1], 2)
    assert str(error).startswith("'rest' has not returned after 2.0 s on 1 of 2 ranks (1), which continue with it")
    assert re.search(r"rank 1 \(pid \d+ on node [\d.]+\)", error.stacks[1])
    assert "in deep_inside" in str(error)
    assert str(error).index("in deep_inside") < str(error).index("in rest")
    assert group.execute_all_sync("rest", 0) == [0, 1]


@pytest.mark.long
def test_code_that_holds_the_interpreters_lock_is_seen_as_well(group):
    with group.deadline(2), pytest.raises(LateCallError, match="in hold_the_interpreter") as late:
        group.hold_the_interpreter(0, 15)
    assert late.value.ranks == [0]
    assert group.execute_all_sync("rest", 0) == [0, 1]


class SlowToStart:
    def __init__(self) -> None:
        if os.environ["RANK"] == "1":
            self.load()

    def load(self):
        time.sleep(600)

    def ping(self):
        return "pong"


def test_a_rank_that_is_still_in_its_constructor_is_seen_there(local_ray):
    with (
        RayResourcePool([2], use_gpu=False, max_colocate_count=1) as pool,
        RayWorkerGroup(pool, RayClassWithInitArgs(SlowToStart)) as group,
    ):
        assert group.execute_rank_zero_sync("ping") == "pong"
        assert poll(lambda: "in load" in group.stacks()[1], timeout=60), "its process must be up"
        assert "in its constructor" in group.stacks()[1]
        with group.deadline(1), pytest.raises(LateCallError, match="rank 1, in its constructor") as late:
            group.execute_all_sync("ping")
        assert "in load" in late.value.stacks[1]


def test_a_rank_that_finds_no_room_in_its_bundle_says_so(local_ray):
    # With devices: ranks hold a share of those as long as they live, but the CPUs of a bundle only while they start.
    with (
        RayResourcePool([1], max_colocate_count=1) as pool,
        RayWorkerGroup(pool, RayClassWithInitArgs(Sleeper)) as group,
    ):
        assert group.execute_rank_zero_sync("rest", 0) == 0
        with RayWorkerGroup(pool, RayClassWithInitArgs(Sleeper)) as one_too_many:
            full = "not been started; a bundle's device has room for max_colocate_count ranks"
            with one_too_many.deadline(3), pytest.raises(LateCallError, match=full):
                one_too_many.execute_rank_zero_sync("rest", 0)
            group.close()
            assert one_too_many.execute_rank_zero_sync("rest", 0) == 0


def test_calls_in_time_and_calls_without_a_deadline_just_return(group):
    with group.deadline(30):
        assert group.execute_all_sync("rest", 0) == [0, 1]
        assert group.execute_rank_zero_sync("rest", 0) == 0
    assert group.execute_all_sync("rest", 0.2) == [0, 1]


@pytest.mark.parametrize("kind", [ray.exceptions.GetTimeoutError, TimeoutError])
def test_a_methods_own_timeout_is_not_taken_for_the_calls(group, kind):
    with group.deadline(30), pytest.raises(kind, match="of another actor") as error:
        group.execute_rank_zero_sync("wait_for_another", kind)
    assert not isinstance(error.value, LateCallError)


def test_an_actor_that_died_elsewhere_is_not_taken_for_a_rank(group):
    @ray.remote(num_cpus=0)
    class Other:
        def leave(self):
            os._exit(1)

    def ask(other):
        ray.get(other.leave.remote())

    with pytest.raises(ray.exceptions.ActorDiedError) as error:
        group.execute_func_rank_zero(ask, Other.remote())
    assert not isinstance(error.value, RankDiedError)


def test_a_second_process_sees_where_the_ranks_are(group, until):
    refs = group.execute_all_async("rest", 120, until)
    assert "in deep_inside" in _print_in_another_process(group, "group.stacks()[1]")
    until.touch()
    ray.get(refs)


def test_a_second_process_sees_the_calls_in_flight(group, until):
    refs = [*group.execute_all_async("rest", 120, until), group.execute_rank_zero_async("leave", 0)]
    assert poll(lambda: [call.state for call in group.calls()] == ["running", "queued", "running"], timeout=60)
    running, queued = _print_in_another_process(group, "group.calls()").splitlines()
    job = ray.get_runtime_context().get_job_id()
    assert re.fullmatch(rf"rest: running for [\d.]+ s on ranks 0, 1 \(job {job}\)", running)
    assert re.fullmatch(rf"leave: queued for [\d.]+ s on rank 0 \(job {job}\)", queued)
    until.touch()
    ray.get(refs)
    assert poll(lambda: str(group.calls()) == "no calls in flight", timeout=60)


@ray.remote(num_cpus=0)
class Orphan:
    def __init__(self):
        time.sleep(4)  # within which its caller reports that it has asked for this actor, and is frozen


@ray.remote(num_cpus=0)
class Caller:
    def create(self):
        return Orphan.options(lifetime="detached").remote()._actor_id.hex(), os.getpid()


def test_a_constructor_that_has_returned_is_no_call_in_flight_although_its_caller_was_killed(local_ray):
    caller = Caller.remote()
    orphan, pid = ray.get(caller.create.remote())

    def is_listed():
        return any(task.actor_id == orphan and task.is_constructor for task in unfinished_tasks())

    assert poll(is_listed, timeout=60)
    os.kill(pid, signal.SIGSTOP)  # before it can report that the constructor has returned
    assert poll(lambda: actor_state(orphan).state == "ALIVE", timeout=30)
    os.kill(pid, signal.SIGKILL)
    time.sleep(2)  # within which Ray's processes report
    assert is_listed()
    assert not calls_in_flight([orphan], lambda ranks: {})
    seen = in_gcs.tables(Gcs.connect(ray.get_runtime_context().gcs_address), {})
    assert orphan not in {task.actor_id for task in seen.tasks}


def test_calls_of_a_driver_that_was_killed_are_listed_until_they_return(group, until):
    rest = f"group.execute_all_async('rest', 120, {str(until)!r})"
    calls = f"[{rest} for _ in range(2)], print('called'), time.sleep(120)"
    with _another_process(group, calls) as driver:
        assert driver.stdout.readline() == "called\n"
        assert poll(lambda: len(group.calls()) == 4, timeout=60)
        (job,) = {call.job_id for call in group.calls()}
        assert job != ray.get_runtime_context().get_job_id()
        driver.kill()
    running = r"rest: running, its caller has ended for [\d.]+ s on ranks 0, 1 .*"
    queued = r"rest: queued, its caller has ended for [\d.]+ s on ranks 0, 1 .*"
    # Once Ray has noticed that the driver is gone, and both ranks have reported their first calls.
    assert poll(lambda: re.fullmatch(f"{running}\n{queued}", str(group.calls())), timeout=60), str(group.calls())
    until.touch()
    assert group.execute_all_sync("rest", 0) == [0, 1], "after those calls"
    assert poll(lambda: str(group.calls()) == "no calls in flight", timeout=60)
    assert len([task for task in unfinished_tasks() if task.job_id == job and task.method == "rest"]) == 4


def _print_in_another_process(group, expression):
    with _another_process(group, f"print({expression})") as process:
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return said


def _another_process(group, statement):
    program = f"""
import time
import ray
from workergroups import RayWorkerGroup

ray.init(namespace={ray.get_runtime_context().namespace!r})
group = RayWorkerGroup.from_detached(worker_names={group.worker_names!r})
{statement}
"""
    environment = {**os.environ, "RAY_ADDRESS": ray.get_runtime_context().gcs_address, "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, text=True)


def test_a_rank_that_ends_during_a_call_is_named_with_its_process(local_ray):
    with (
        RayResourcePool([2], use_gpu=False, max_colocate_count=1) as pool,
        RayWorkerGroup(pool, RayClassWithInitArgs(Sleeper)) as group,
    ):
        with (
            group.deadline(30),
            pytest.raises(
                RankDiedError, match=r"rank 1 of 2 \(pid \d+ on node [\d.]+\) died: its code called os\._exit\(7\)"
            ),
        ):
            group.execute_all_sync("leave", [0, 7])
        assert group.stacks()[1].startswith("rank 1: dead: ")


def test_a_rank_that_crashes_says_what_it_wrote_last(local_ray):
    with (
        RayResourcePool([1], use_gpu=False, max_colocate_count=1) as pool,
        RayWorkerGroup(pool, RayClassWithInitArgs(Sleeper)) as group,
        pytest.raises(RankDiedError, match="Fatal Python error: Segmentation fault") as died,
    ):
        group.execute_all_sync("crash")
    assert re.search(r'File "[^"]+test_deadlines.py", line \d+ in crash', str(died.value))


@pytest.mark.parametrize(
    ("leave", "words"),
    [
        (lambda: sys.exit(7), "exit code 7"),
        (lambda: os._exit(7), r"died: its code called os\._exit\(7\) at .*test_deadlines\.py:[0-9]+ in <lambda>"),
        (lambda: (os.kill(os.getpid(), signal.SIGTERM), time.sleep(30)), "receives a SIGTERM"),
    ],
    ids=["exit code", "hard exit", "signal"],
)
def test_a_rank_that_exits_says_how(local_ray, leave, words):
    with (
        RayResourcePool([1], use_gpu=False, max_colocate_count=1) as pool,
        RayWorkerGroup(pool, RayClassWithInitArgs(Sleeper)) as group,
        pytest.raises(RankDiedError, match=words),
    ):
        group.execute_func_rank_zero(leave)
