#!/usr/bin/env python3
"""`kubectl workergroups` as krew installs it: on first use, it installs the wheel next to it, with pinned packages."""

import os
import subprocess
import sys
from pathlib import Path

# krew puts a link to this file on PATH.
HERE = Path(__file__).resolve().parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "workergroups"
OLDEST_PYTHON = (3, 10)


def main() -> None:
    """Become the installed command."""
    if sys.version_info < OLDEST_PYTHON:
        sys.exit(f"error: kubectl workergroups needs Python 3.10 or later as python3, not {sys.version.split()[0]}")
    (wheel,) = HERE.glob("*.whl")
    environment = CACHE / f"{wheel.stem}-python{sys.version_info.major}.{sys.version_info.minor}"
    complete = environment / "complete"
    if not complete.exists():
        install(wheel, environment)
        complete.touch()
    command = str(environment / "bin" / "kubectl-workergroups")
    os.execv(command, [command, *sys.argv[1:]])


def install(wheel: Path, environment: Path) -> None:
    """Create a virtual environment with the wheel and the packages of the lock file, or end with what failed."""
    print(f"kubectl workergroups: installing Python packages into {environment}, once", file=sys.stderr)
    pip = [f"{environment}/bin/python", "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    steps = [
        [sys.executable, "-m", "venv", "--clear", str(environment)],
        [*pip, "--require-hashes", f"--requirement={HERE / 'cli.lock'}"],
        [*pip, "--no-deps", "--no-index", str(wheel)],
    ]
    for step in steps:
        if subprocess.run(step, stdout=sys.stderr).returncode != 0:
            sys.exit(f"error: cannot install kubectl workergroups: `{' '.join(step)}` failed, see above")


if __name__ == "__main__":
    main()
