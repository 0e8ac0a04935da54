"""examples/resilient-training on a laptop: the driver itself replaces the ranks that were killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from workergroups.waiting import poll

PROGRAM = Path(__file__).parents[3] / "examples" / "resilient-training" / "driver.py"


def ranks_of(driver: int) -> list[int]:
    """Return the ranks' processes in the Ray that this driver has started."""
    return [
        int(process.name)
        for process in Path("/proc").glob("[0-9]*")
        if _read(process / "cmdline").startswith("ray::Trainer") and driver in _ancestors(int(process.name))
    ]


def _ancestors(process: int) -> list[int]:
    found = []
    while process > 1:
        # The parent's number follows the state, after the name in parentheses.
        process = int((_read(Path(f"/proc/{process}/stat")).rpartition(")")[2].split() or [0, 0])[1])
        found.append(process)
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""  # the process has ended


@pytest.fixture
def driver(ray_environment, rays, tmp_path):
    rays.stop()
    log = tmp_path / "log"
    command = [sys.executable, str(PROGRAM), "--checkpoints", str(tmp_path / "checkpoints"), "--steps=400"]
    with log.open("w") as output, subprocess.Popen(command, stdout=output, stderr=output) as process:
        yield process, log, tmp_path / "checkpoints"
        process.terminate()


def test_killed_ranks_are_created_again_and_go_on_from_the_last_checkpoint(driver):
    process, log, directory = driver
    for number in (1, 2):
        attempt = directory / f"{number:06d}"
        assert poll(lambda attempt=attempt: list(attempt.glob("*.json")), timeout=120), log.read_text()
        os.kill(ranks_of(process.pid)[0], signal.SIGKILL)
    assert process.wait(timeout=180) == 0, log.read_text()
    lines = log.read_text()
    assert lines.count("ProcessDied") == 2
    assert "attempt 000003, incarnation None: from step " in lines
    assert "from step 0" not in lines.partition("attempt 000002")[2]
    assert (directory / "000003" / "00000400.json").exists()
