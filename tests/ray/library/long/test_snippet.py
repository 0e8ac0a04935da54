"""The documentation's first program, as it stands there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

LIBRARY = Path(__file__).parents[4] / "docs" / "library.md"


def test_the_first_program_of_the_documentation_runs_on_a_machine_without_gpus(ray_environment, rays, tmp_path):
    rays.stop()
    program = tmp_path / "program.py"
    program.write_text(LIBRARY.read_text().partition("```python\n")[2].partition("```")[0])
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.splitlines()[-1] == "[10, 11, 12, 13]"
