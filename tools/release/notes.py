"""What has changed: towncrier makes the notes from changelog.d/."""

import re
import sys

from tools.console import REPOSITORY, run

_TOWNCRIER = [sys.executable, "-m", "towncrier", "build", f"--dir={REPOSITORY}"]


def draft(version: str) -> str:
    """Return the notes of the next version."""
    return run([*_TOWNCRIER, "--draft", f"--version={version}"])


def move_to_changelog(version: str) -> None:
    """Move the fragments into CHANGELOG.md."""
    run([*_TOWNCRIER, "--yes", f"--version={version}"])


def released(changelog: str) -> list[str]:
    """Return the versions in the text of a changelog."""
    return re.findall(r"(?m)^## (\d+\.\d+\.\d+)$", changelog)
