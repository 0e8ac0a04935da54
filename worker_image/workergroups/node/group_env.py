"""The variables that a group takes from Secrets and ConfigMaps, in the processes of its ranks.

The operator writes them into one Secret, which the pools' pods mount: a file for each group, with the digest of its
values. A process learns from one variable, `GROUP:DIGEST`, which file it needs. `setup_worker` imports this module
before each rank, so it needs only the standard library.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workergroups_api.vocabulary import Variable


def reference(group: str, digest: str) -> dict[str, str]:
    """Return the variable that tells a process which file it needs."""
    return {Variable.GROUP_ENV.value: f"{group}:{digest}"}


def delivered(group: str, digest: str) -> Mapping[str, str] | None:
    """Return the values; None while the pod's kubelet has not delivered this version of them."""
    try:
        entry: Any = json.loads(Path(os.environ[Variable.GROUP_ENV_DIRECTORY.value], group).read_bytes())
        values: Mapping[str, str] = entry["env"]
        return values if entry["digest"] == digest else None
    except (OSError, ValueError, TypeError, KeyError):
        return None


def load() -> bool:
    """Set the variables that this process needs, unless it has them; return whether it has them now."""
    needed = os.environ.get(Variable.GROUP_ENV.value)
    if needed is None:
        return True
    values = delivered(*needed.split(":", 1))
    if values is None:
        return False
    for name, value in values.items():
        if name == "PYTHONPATH":  # after the group's code and the library
            sys.path += value.split(":")
            value = ":".join(filter(None, [os.environ.get(name), value]))
        os.environ[name] = value
    del os.environ[Variable.GROUP_ENV.value]
    return True


def require() -> None:
    """Set the variables that this process needs, unless it has them.

    Raises:
        RuntimeError: The pod does not have them.
    """
    if not load():
        raise RuntimeError(
            "the pod does not have the variables that the group takes from Secrets and ConfigMaps: the group's Secret "
            "was changed or deleted while its ranks started; restart the group"
        )
