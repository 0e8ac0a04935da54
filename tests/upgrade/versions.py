"""Versions of the operator on the cluster: an earlier commit and this checkout, installed by their own commands."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.truth import operators
from tools.console import REPOSITORY
from tools.demo.names import OPERATOR_NAMESPACE, RELEASE

EARLIER = (Path(__file__).parent / "earlier_commit.txt").read_text().strip()
# With an image's build; without, some 20 seconds.
SECONDS = 300


@contextmanager
def earlier_checkout(directory: Path) -> Iterator[Path]:
    """Check out the earlier commit next to this one."""
    subprocess.run(["git", "worktree", "add", "--detach", directory, EARLIER], cwd=REPOSITORY, check=True)
    try:
        yield directory
    finally:
        subprocess.run(["git", "worktree", "remove", "--force", directory], cwd=REPOSITORY, check=True)


def install(checkout: Path) -> None:
    """Build the images of a checkout if necessary, load them, and upgrade the release to its chart."""
    command = [sys.executable, "-m", "tools.demo", "prepare-tests"]
    subprocess.run(command, cwd=checkout, check=True, timeout=SECONDS, stdout=subprocess.DEVNULL)


def roll_back(checkout: Path) -> None:
    """Return to the release before, as an administrator does. A registry would still have its images."""
    tool = [sys.executable, "-m", "tools.local_cluster"]
    built = subprocess.run([*tool, "build-images"], cwd=checkout, check=True, stdout=subprocess.PIPE, timeout=SECONDS)
    for image in ("workergroups-operator", "workergroups-worker"):
        subprocess.run(
            [*tool, "load-image", json.loads(built.stdout)[image], "plain", "nvidia"], cwd=checkout, check=True
        )
    where = [f"--namespace={OPERATOR_NAMESPACE}", "--wait", "--timeout=180s"]
    subprocess.run(["helm", "rollback", RELEASE, *where], check=True, timeout=SECONDS)


def operator_images() -> set[str]:
    """The images that the operator's pods run."""
    path = "--output=jsonpath={.items[*].spec.containers[0].image}"
    return set(operators.kubectl()("get", "pods", operators.PODS, path).split())
