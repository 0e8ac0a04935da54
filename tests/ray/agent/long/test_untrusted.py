"""What a group's code does to its launch is told by that group's report, and happens nowhere else."""

import time

import pytest

from tests.ray.agent.planned import Group, launch
from tests.ray.agent.test_executor import all_ready, is_in, ranks

# One that fetches what tasks return, and does or does not unpickle it.
CURIOUS = """
import contextlib, ray
from workergroups_agent.executor.pod_tasks import LaunchTasks
settle = LaunchTasks._settle
def fetch_and_settle(self, task, *more):
    with contextlib.suppress(BaseException):
        ray.get(task.ref)
    settle(self, task, *more)
LaunchTasks._settle = fetch_and_settle
"""
CARELESS = """
import workergroups_agent.executor.driver as program
program.refuse_to_unpickle = lambda: None
"""


SPY = """
import os

class Spy(Exception):
    def __reduce__(self):
        return exec, (f"import os; open({directory!r} + '/ran-in-' + str(os.getpid()), 'w')",)
"""

# Whatever the launching task returns becomes a spy.
RESULT = """
import ray
context = ray._private.worker.global_worker.get_serialization_context()
serialize = context.serialize
context.serialize = lambda value: serialize(Spy())
launch_record.write = lambda *_: None
"""

EXCEPTION = """
def fail(*_):
    raise Spy
launch_record.write = fail
"""


@pytest.mark.parametrize("attack", [RESULT, EXCEPTION], ids=["result", "exception"])
@pytest.mark.parametrize(
    ("executor", "runs_code"),
    [("", False), (CURIOUS, False), (CURIOUS + CARELESS, True)],
    ids=["as it is", "if it asked", "if it asked and were careless"],
    indirect=["executor"],
)
def test_what_a_launch_returns_or_raises_is_not_unpickled_by_the_executor(executor, tmp_path, attack, runs_code):
    spied = tmp_path / "spied"
    spied.mkdir()
    code = f"directory = {str(spied)!r}\n{SPY}from workergroups_agent.executor import launch_record\n{attack}raise Spy"
    report = ranks(executor.until(is_in("LaunchFailed"), Group(code=code)))
    assert "before it reported a result" in report.message
    executor.until(lambda reports: True)  # the group is gone, and the last reference to the task with it
    time.sleep(0.5)
    ran_in = {path.name.removeprefix("ran-in-") for path in spied.iterdir()}
    assert (str(executor.process.pid) in ran_in) is runs_code


ODD = "\U0001f4a5 " + "x" * 40_000 + "\0\ud800 the end"


def test_an_odd_message_is_reported_short_and_plain_and_the_neighbour_is_served(executor):
    odd = Group("odd", code=f"raise ValueError({ODD!r})")
    # Ray itself cannot tell of half a surrogate pair.
    message = ODD.replace("\ud800", "\x7f")
    constructor = Group("constructor", launch=launch(init_kwargs={"fail_on": 0, "message": message}))
    loud = Group("loud", bundles=(("actors", 2, 1),), code="print('x' * 5_000_000, flush=True)\nAccumulator = 7")
    variable = Group("variable", launch=launch(env={"SECRET": "top secret\0"}))
    trainer = Group()

    def all_told(reports):
        states = {name: entry.report.state for name, entry in reports.groups.items()}
        failed = all(states[name] == "LaunchFailed" for name in ("odd", "loud", "variable"))
        return failed and ranks(reports, "constructor").failures and ranks(reports).ready_count == 2

    reports = executor.until(all_told, odd, constructor, loud, variable, trainer)
    told = {
        "the end (accumulator.py, line 1)": ranks(reports, "odd").message,
        "the end": ranks(reports, "constructor").failures[0].message,
    }
    for end, message in told.items():
        assert len(message) <= 1024
        assert message.startswith("ValueError: \U0001f4a5 xxx")
        assert message.endswith(end)
    assert "SECRET" in ranks(reports, "variable").message
    log = executor.log.read_text()
    assert "top secret" not in log
    assert "xxx" not in log
    assert all_ready(executor.until(all_ready, trainer))
