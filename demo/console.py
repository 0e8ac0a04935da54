"""Progress lines, commands, and errors whose message is for the user."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
_STARTED = time.monotonic()


class DemoError(Exception):
    """A failure that the user must know about; its text is the whole message."""


def say(message: str) -> None:
    """Print a progress line with the seconds since the start. Standard output is for results."""
    print(f"[{time.monotonic() - _STARTED:6.1f}s] {message}", file=sys.stderr, flush=True)


def run(
    argv: Sequence[str], env: Mapping[str, str] | None = None, stdin: str | None = None, show_progress: bool = False
) -> str:
    """Run a command in the repository and return what it printed; on request, its progress goes to the terminal."""
    environment = {**os.environ, **(env or {})}
    try:
        done = subprocess.run(
            argv,
            env=environment,
            cwd=REPOSITORY,
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=None if show_progress else subprocess.PIPE,
            text=True,
        )
    except FileNotFoundError:
        raise DemoError(f"there is no {argv[0]} on this machine: install it and put it on PATH") from None
    if done.returncode != 0:
        raise DemoError(f"`{' '.join(argv)}` exited {done.returncode}:\n{done.stdout}{done.stderr or ''}".rstrip())
    return done.stdout


class Kubectl:
    """Runs kubectl with a cluster's environment, in one namespace.

    The demo runs before any virtual environment exists, so it has no client but kubectl.
    """

    def __init__(self, env: Mapping[str, str], namespace: str) -> None:
        self._env = env
        self.namespace = namespace
        self._prefix = ("kubectl", "--namespace", namespace)

    def __call__(self, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl; return what it printed."""
        return run([*self._prefix, *arguments], self._env, stdin=stdin)

    def json(self, *arguments: str) -> Any:
        """Run `kubectl get`; return the object or the list, None if `--ignore-not-found` found nothing."""
        text = self("get", *arguments, "--output=json")
        return json.loads(text) if text else None
