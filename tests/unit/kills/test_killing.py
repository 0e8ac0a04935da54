"""What `make kills` looks for in pods is found by their shell."""

import subprocess

import pytest

from tests.kills import killing


@pytest.mark.parametrize(
    ("script", "command"),
    [
        (killing._GCS, ["/usr/lib/ray/gcs_server", "30"]),
        (killing._RANKS, ["ray::Trainer.step", "30"]),
        (killing._DRIVERS, ["python3 -u /code/driver.py", "30"]),
    ],
)
def test_a_process_is_found_by_its_command_line(script, command):
    with subprocess.Popen(command, executable="/bin/sleep") as process:
        try:
            found = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout.split()
            assert str(process.pid) in found
        finally:
            process.kill()
