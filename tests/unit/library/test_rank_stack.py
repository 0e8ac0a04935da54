"""What the stacks of a rank's threads say about what it does."""

from pathlib import Path

import pytest
import ray._private.function_manager as function_manager

from workergroups.single_controller.ray import run_method
from workergroups.stacks.rank_stack import MAX_FRAMES, Doing, Frame, parse

PYTHON = "/usr/lib/python3.11"
PACKAGES = f"{PYTHON}/site-packages"
RAY = f"{PACKAGES}/ray"
BY_RAY = f"""  File "{RAY}/util/tracing/tracing_helper.py", line 487 in _resume_span
  File "{RAY}/_private/function_manager.py", line 740 in actor_method_executor
"""
MAIN_LOOP = f"""  File "{RAY}/_private/worker.py", line 1069 in main_loop
  File "{RAY}/_private/workers/default_worker.py", line 323 in <module>
"""
IN_METHOD = f"""Current thread 0x00007f070f5edb80 (most recent call first):
  File "/code/data.py", line 17 in read_shard
  File "/code/trainer.py", line 41 in step
{BY_RAY}{MAIN_LOOP}"""
IDLE = f"Current thread 0x00007f7bd5dcbb80 (most recent call first):\n{MAIN_LOOP}"
ASYNC = f"""Thread 0x00007fdfdaa5e6c0 (most recent call first):
  File "{PYTHON}/selectors.py", line 468 in select
  File "{PYTHON}/asyncio/base_events.py", line 1884 in _run_once
  File "{PYTHON}/asyncio/base_events.py", line 607 in run_forever
"""
THREADED = f"""Thread 0x00007fda85ffb6c0 [default] (most recent call first):
  File "/code/trainer.py", line 3 in ping
{BY_RAY}
Thread 0x00007fda867fc6c0 [default] (most recent call first):
  File "/code/trainer.py", line 22 in save
{BY_RAY}"""


def test_the_frames_are_the_methods_without_rays():
    stack = parse(IN_METHOD)
    assert stack.doing is Doing.METHOD
    assert stack.frames == (Frame("/code/data.py", 17, "read_shard"), Frame("/code/trainer.py", 41, "step"))


def test_a_heading_before_the_stacks_changes_nothing():
    assert parse(f"rank 2 (pid 71 on node 10.0.0.7):\n{IN_METHOD}") == parse(IN_METHOD)


@pytest.mark.parametrize(
    ("text", "doing"),
    [
        (IDLE, Doing.NOTHING),
        (ASYNC, Doing.ASYNC),
        (f"{ASYNC}\n{IDLE}", Doing.ASYNC),
        (f"{ASYNC}\n{IN_METHOD}", Doing.METHOD),
        ("no stacks within 3 s", Doing.UNKNOWN),
        ("rank 1 (pid 9 on node 10.0.0.7):\nno stacks within 3 s", Doing.UNKNOWN),
        ("", Doing.UNKNOWN),
        ('  File "', Doing.UNKNOWN),
    ],
)
def test_a_rank_does_nothing_or_awaits_or_does_not_answer(text, doing):
    assert parse(text).doing is doing


def test_a_rank_without_stacks_has_the_reason():
    assert parse("rank 1 (pid 9 on node 10.0.0.7):\nno stacks within 3 s").note == "no stacks within 3 s"
    assert parse("").note == "no stacks"


def test_of_several_methods_the_one_that_was_called_counts():
    assert [frame.function for frame in parse(THREADED, "save").frames] == ["save"]
    assert [frame.function for frame in parse(THREADED).frames] == ["ping"]
    assert (parse(THREADED).methods, parse(IN_METHOD).methods, parse(IDLE).methods) == (2, 1, 0)


def test_what_runs_a_groups_method_is_no_part_of_it():
    ours = Path(run_method.__file__)
    stack = IN_METHOD.replace(BY_RAY, f'  File "{ours}", line 30 in run\n{BY_RAY}')
    assert stack != IN_METHOD
    assert parse(stack) == parse(IN_METHOD)


def test_a_deep_stack_keeps_both_ends():
    deep = "".join(f'  File "/code/deep.py", line {line} in f{line}\n' for line in range(10_000))
    frames = parse(f"Current thread 0x1 (most recent call first):\n{deep}{BY_RAY}").frames
    assert len(frames) == MAX_FRAMES
    assert (frames[0].function, frames[-1].function) == ("f0", "f9999")


@pytest.mark.parametrize(
    ("file", "is_library"),
    [
        ("/code/trainer.py", False),
        (f"{PACKAGES}/verl/workers/actor.py", False),
        (f"{PACKAGES}/torch/nn/modules/linear.py", True),
        (f"{RAY}/_private/worker.py", True),
        (f"{PYTHON}/threading.py", True),
        ("<frozen importlib._bootstrap>", True),
        ("/code/torch/own.py", False),
    ],
)
def test_frames_of_python_torch_and_ray_are_the_librarys(file, is_library):
    assert Frame(file, 1, "f").is_library is is_library


def test_ray_calls_methods_from_the_function_that_we_look_for():
    executors = function_manager.FunctionActorManager._make_actor_method_executor.__code__.co_consts
    assert "actor_method_executor" in {getattr(code, "co_name", "") for code in executors}
