"""Start a worker process of Ray with its environment variables, as Ray's `setup_worker.py` does, without importing Ray.

The raylet runs this before each process that has a runtime environment, such as each rank of a group with code. Ray's
file imports all of Ray to set variables, which takes half a second of CPU time; then the worker imports Ray again.
Environments that need more than variables are left to Ray's file. If a fork server has imported what the process needs,
a fork of it becomes the worker instead: see `workergroups.warm`. This file must have the name of Ray's: by that name,
the raylet skips it for processes without a runtime environment.
"""

import json
import os
import re
import runpy
import sys
from collections.abc import Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from workergroups.node import group_env
from workergroups.warm import client, places
from workergroups.worker_process import starting
from workergroups_api.vocabulary import Variable
from workergroups_common import container_env

_CONTEXT = "--serialized-runtime-env-context="
_ONLY_SETS_VARIABLES: dict[str, Any] = {"command_prefix": [], "override_worker_entrypoint": None, "java_jars": []}


def variables(arguments: list[str]) -> dict[str, str] | None:
    """Return the variables to set, None where they are not all that a worker of this command line needs."""
    context = json.loads(next((each.removeprefix(_CONTEXT) for each in arguments if each.startswith(_CONTEXT)), "{}"))
    more = {name: value for name, value in context.items() if name not in ("env_vars", "py_executable")}
    is_python = "--language=PYTHON" in arguments and context.get("py_executable") == sys.executable
    return context.get("env_vars", {}) if is_python and more == _ONLY_SETS_VARIABLES else None


def expanded(value: str) -> str:
    """Return a value as Ray sets it: `${NAME}` is the variable of that name, or nothing."""
    return re.sub(r"\$\{[A-Z0-9_]+\}", "", os.path.expandvars(value))


def main() -> None:
    """Become the worker, or let a fork server start it."""
    found = variables(sys.argv)
    if found is None:
        ray = find_spec("ray")
        assert ray is not None
        assert ray.origin is not None
        runpy.run_path(str(Path(ray.origin).parent / "_private/workers/setup_worker.py"), run_name="__main__")
        return
    ours = [each for each in sys.argv[1:] if not each.startswith((_CONTEXT, "--language="))]
    command = [sys.executable, *ours]
    announcement = starting.stand_by(command, partial(set_variables, found))
    set_variables(found)
    directory = places.directory_of(os.environ, command)
    command = starting.announcing(command, announcement)
    if directory is not None:
        os.environ[Variable.WARM.value] = str(directory)
        if client.forked_instead(directory / places.SOCKET, os.environ, command, announcement):
            return
    os.execv(sys.executable, command)


def set_variables(found: Mapping[str, str]) -> None:
    """Set a worker's variables in this process: those of its runtime environment, and those from Secrets.

    Those of a WorkerGroup refer to the pod's variables as in a container.
    """
    is_group, of_pod = Variable.WARM.value in found, dict(os.environ)
    for name, value in found.items():
        # The agent itself refers to the pod's PYTHONPATH, where Ray's file may set it.
        by_ray = not is_group or name == "PYTHONPATH"
        os.environ[name] = expanded(value) if by_ray else container_env.expanded(value, of_pod)
    group_env.load()  # if they are not there, the rank reports that


if __name__ == "__main__":
    main()
