"""What `make kills` looks for in pods is found by their shell."""

import subprocess
from contextlib import ExitStack

import pytest

from tests.kills import killing

COMMANDS = {
    killing._GCS: "/usr/lib/ray/gcs_server",
    killing._RANKS: "ray::Trainer.step",
    killing._DRIVERS: "python3 -u /code/driver.py",
}


@pytest.fixture
def processes():
    """A process of each kind, by the script that looks for it."""
    with ExitStack() as stack:
        started = {}
        for script, command in COMMANDS.items():
            started[script] = stack.enter_context(subprocess.Popen([command, "30"], executable="/bin/sleep"))
            stack.callback(started[script].kill)
        yield started


@pytest.mark.parametrize("script", COMMANDS, ids=COMMANDS.values())
def test_of_several_processes_one_is_found_by_its_command_line(processes, script):
    found = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout.split()
    own = {str(process.pid) for process in processes.values()}
    assert own & set(found) == {str(processes[script].pid)}
