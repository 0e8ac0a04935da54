"""The first programs of the README and of the library's page, as they stand there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

REPOSITORY = Path(__file__).parents[4]


@pytest.mark.parametrize(("page", "printed"), [("README.md", "[10, 11]"), ("docs/library.md", "[10, 11, 12, 13]")])
def test_a_first_program_runs_on_a_machine_without_gpus(ray_environment, rays, tmp_path, page, printed):
    rays.stop()
    program = tmp_path / "program.py"
    program.write_text((REPOSITORY / page).read_text().partition("```python\n")[2].partition("```")[0])
    # Ray's dashboard leaves a socket in the directory for temporary files, in which Ray's own files are, too. The names
    # of sockets are limited to 107 bytes, which those in `tmp_path` would exceed.
    with TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        environment = {**os.environ, "TMPDIR": directory}
        done = subprocess.run(
            [sys.executable, program], env=environment, capture_output=True, text=True, timeout=120, check=True
        )
    assert done.stdout.splitlines()[-1] == printed
