"""Our command line, as on a user's machine."""

import subprocess
import sys

from tools.console import REPOSITORY
from tools.gpu_machine.checks.site import Site
from tools.gpu_machine.layout import CLI_PACKAGES

_SOURCES = (CLI_PACKAGES, *(str(REPOSITORY / name) for name in ("cli", "common", "crds", "worker_image")))
_MODULE = f"import sys; sys.path[:0] = {list(_SOURCES)!r}; from workergroups_cli.__main__ import main; main()"


def start(*words: str) -> "subprocess.Popen[str]":
    """Start it; its output and errors are one text."""
    command = [sys.executable, "-c", _MODULE, *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")


def run(site: Site, *words: str, seconds: int = 120) -> tuple[int | None, str]:
    """Run it to its end; return its exit status, and what it printed, and report both."""
    with start(*words) as process:
        try:
            printed, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            printed, _ = process.communicate()
            printed += f"\nnot within {seconds} s"
    site.say(f"$ workergroups {' '.join(words)}\n{printed}")
    return process.returncode, printed.strip()
