"""A process that cannot become a worker of Ray is explained by another one; here Ray is a package that prints."""

import json
import os
import subprocess
import sys
import time

import pytest

from tests.unit.agent.test_setup_worker import arguments
from workergroups.worker_process import default_worker, starting

# What a raylet runs, with as many seconds for a start as a test has.
RUN = """
import sys
from workergroups.worker_process import setup_worker, starting
starting.SECONDS = float(sys.argv.pop(1))
setup_worker.main()
"""
RAY = {
    "__init__.py": "",
    "_private/__init__.py": "",
    "_private/worker.py": """
import json, os, sys
class Worker:
    def main_loop(self):
        frames = [frame.f_code.co_name for frame in (sys._getframe(), sys._getframe(1))]
        said = os.environ.get("WORKERGROUPS_START_FAILED")
        children = open(f"/proc/self/task/{os.getpid()}/children").read().split()
        print(json.dumps([os.getpid(), sys.argv[1:], os.environ.get("A"), said, frames, children]), flush=True)
""",
    "_private/function_manager.py": """
FunctionExecutionInfo = None
class FunctionActorManager:
    _load_actor_class_from_gcs = get_execution_info = None
""",
    "_private/workers/default_worker.py": "from ray._private.worker import Worker\nWorker().main_loop()",
}


@pytest.fixture
def start(tmp_path):
    """Start a worker as a raylet does; return the process id, and what the process that Ray gets to know prints."""
    for name, text in RAY.items():
        (tmp_path / "ray" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "ray" / name).write_text(text)

    def run(seconds=60, **variables):
        environment = {**os.environ, "PYTHONPATH": str(tmp_path), "RAY_RAYLET_PID": str(os.getpid())}
        command = [sys.executable, "-c", RUN, str(seconds), default_worker.__file__, "--node-id=1"]
        output = tmp_path / "output"
        with output.open("w") as stream:
            process = subprocess.Popen(
                [*command, *arguments(env_vars={"A": "b", **variables})], env=environment, stdout=stream
            )
            process.wait(60)
        deadline = time.monotonic() + 60
        while not output.read_text().endswith("\n"):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        (line,) = output.read_text().splitlines()
        return process.pid, *json.loads(line)

    return run


def at_start(tmp_path, code):
    """The variable by which interpreters run code when they start."""
    (tmp_path / "of-the-user").mkdir()
    (tmp_path / "of-the-user" / "sitecustomize.py").write_text(code)
    return {"PYTHONPATH": f"{tmp_path / 'of-the-user'}:${{PYTHONPATH}}"}


def test_a_process_that_can_start_is_the_one_that_ray_has_started_and_has_no_child(start):
    pid, own, options, variable, why, frames, children = start()
    assert (own, options, variable, why) == (pid, ["--node-id=1"], "b", None)
    assert (frames, children) == (["main_loop", "<module>"], [])


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import sys; sys.stderr.write('no licence\\n'); sys.stderr.flush(); import os; os._exit(7)", "exit status 7"),
        ("print('no licence', file=__import__('sys').stderr); import os; os.kill(os.getpid(), 11)", "signal SIGSEGV"),
    ],
)
def test_one_without_the_users_surroundings_stands_in_for_one_that_ends_and_knows_why(start, tmp_path, code, words):
    pid, own, options, variable, why, *_ = start(**at_start(tmp_path, code))
    assert own != pid
    assert (options, variable) == (["--node-id=1"], None)
    assert why.startswith(f"it ended with {words} before Ray knew it; it reads these of yours when it starts: ")
    assert "of-the-user/sitecustomize; its last lines: no licence" in why


def test_a_variable_of_the_interpreter_is_named(start):
    assert "it reads these of yours when it starts: PYTHONHOME; " in start(PYTHONHOME="/nonexistent")[4]


def test_what_fails_once_is_started_again(start, tmp_path):
    code = f"import os\ntry: os.mkdir({str(tmp_path / 'seen')!r})\nexcept OSError: pass\nelse: os._exit(7)"
    pid, own, _, variable, why, *_ = start(**at_start(tmp_path, code))
    assert own != pid
    assert (variable, why) == ("b", None)


def test_a_process_that_hangs_is_killed(start, tmp_path):
    pid, own, _, variable, why, *_ = start(seconds=2, **at_start(tmp_path, "import time; time.sleep(3600)"))
    assert own != pid
    assert (variable, why.startswith(starting.LATE)) == (None, True)
