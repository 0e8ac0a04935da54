"""kubectl, for the demo and for what measures on a cluster."""

import json
from collections.abc import Mapping
from typing import Any

from tools.console import run


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
