"""The version, which is in pyproject.toml.

`python -m tools.release.version [ROOT]` writes it into the files that repeat it, here or below another root.
"""

import re
import sys
import tomllib
from pathlib import Path
from typing import Any

from tools.console import REPOSITORY, ToolError, run
from tools.release import notes

_PROJECT = "pyproject.toml"
# In each file, what precedes the version in its line.
_COPIES = {
    "charts/workergroups/Chart.yaml": "version: |appVersion: ",  # Helm
    "worker_image/workergroups.dist-info/METADATA": "Version: ",  # importlib.metadata in Ray's pods
}


def project() -> dict[str, Any]:
    """Return the project's metadata."""
    return dict(tomllib.loads((REPOSITORY / _PROJECT).read_text())["project"])


def current() -> str:
    """Return the version of this checkout."""
    return str(project()["version"])


def change(new: str) -> None:
    """Write a version to pyproject.toml, and to the files that repeat it."""
    file = REPOSITORY / _PROJECT
    file.write_text(re.sub(r'(?m)^(version = )"[^"]*"', rf'\g<1>"{new}"', file.read_text(), count=1))
    write_copies(REPOSITORY)


def write_copies(root: Path) -> None:
    """Write this checkout's files that repeat the version below a directory, with the version of pyproject.toml."""
    for path, words in _COPIES.items():
        text = (REPOSITORY / path).read_text()
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(re.sub(rf"(?m)^({words}).*$", rf"\g<1>{current()}", text))


def refuse_other_than_current(wanted: str) -> None:
    """Raise ToolError unless the version is the checkout's."""
    if wanted != current():
        raise ToolError(f"a dry run builds {current()}, the version in {_PROJECT}: leave VERSION out")


def refuse_unless_new(wanted: str | None) -> None:
    """Raise ToolError if a release of this version cannot begin, with the reason."""
    changed = run(["git", "status", "--porcelain"])
    released = notes.released((REPOSITORY / "CHANGELOG.md").read_text())
    if trouble := why_not(wanted, released, changed):
        raise ToolError(trouble)


def why_not(wanted: str | None, released: list[str], changed: str) -> str | None:
    """Return why a release cannot begin, or None. `changed` are git's lines about files that are not committed."""
    if wanted is None or not re.fullmatch(r"\d+\.\d+\.\d+", wanted):
        return f"VERSION is {wanted or 'missing'}: give three numbers, such as VERSION=0.2.0, for Python and Helm alike"
    newest = max(released, key=_numbers, default=None)
    if newest and _numbers(wanted) <= _numbers(newest):
        return f"CHANGELOG.md has version {newest}: choose a version after it, not {wanted}"
    if changed:
        return f"commit or remove these changes first, or set DRY_RUN=1:\n{changed.rstrip()}"
    return None


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(".")]


if __name__ == "__main__":
    write_copies(Path(sys.argv[1]) if len(sys.argv) > 1 else REPOSITORY)
