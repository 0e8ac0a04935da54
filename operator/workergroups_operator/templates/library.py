"""The library and the agent's code in pods whose image has neither: two init containers, a volume, and PYTHONPATH.

The first container runs the operator's image and copies the code, which is pure Python, so that it fits any image. The
second runs the pod's own image, and checks whether Ray can run in it. A pool's set-up script runs between them, so that
the check finds the Python that it installs.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from workergroups_api.pod_settings import Setup
from workergroups_api.vocabulary import Container

_VOLUME = "workergroups-library"
_DIRECTORY = "/opt/workergroups-library"
_PATH = "PYTHONPATH"
# For Ray's containers: Bash reads this file first. It makes KubeRay's wait for the head, and `ray start`, faster.
BASH_ENV = {"name": "BASH_ENV", "value": f"{_DIRECTORY}/bash_env.sh"}
_ARCHIVE = "/opt/workergroups/library.tar"
# A quota may require these fields. They add nothing to the pod's requests: init containers end before the others start.
INIT_RESOURCES = {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"cpu": "1", "memory": "256Mi"}}
# For containers that run only our code, and for the agent's.
USER_ID = 65532
UNPRIVILEGED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
# What the restricted Pod Security Standard asks of each container.
RESTRICTED = {"runAsNonRoot": True, **UNPRIVILEGED, "seccompProfile": {"type": "RuntimeDefault"}}
# Of containers that write nothing but volumes; it fits any user of the pod's other containers.
READ_ONLY = {**RESTRICTED, "runAsUser": USER_ID, "readOnlyRootFilesystem": True}
_LIKE_RAYS = ("image", "imagePullPolicy", "envFrom", "securityContext")
_SETUP_LIKE_RAYS = ("image", "imagePullPolicy", "env", "envFrom", "securityContext", "resources", "volumeMounts")
# Bash runs the script as a separate program, so that `exit` in it ends only the script.
_RUN_SETUP = """\
timeout --kill-after=10 "$1" bash -e -o pipefail -c "$2" && exit
code=$?
if (( SECONDS >= $1 )); then echo "spec.setup: ended after $1 s, its timeoutSeconds" >&2; fi
exit $code
"""
# These variables may decide which Python the image runs, and what it imports.
_PYTHON_VARIABLES = {"PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH"}
_REFERENCE = re.compile(r"\$\(([^()]+)\)")


def with_library(
    spec: Mapping[str, Any],
    container_name: str,
    library_image: str,
    setup: Setup | None = None,
    *,
    is_on_volumes: bool = False,
) -> dict[str, Any]:
    """Return the pod's spec with the library in the container of that name, and the set-up script before it.

    `is_on_volumes` is whether the container's Python may be on one of its volumes, so that the check needs them.

    The spec includes a user's template, which may be any JSON. A spec that is no pod stays as it is; the API server
    explains what is wrong with it.
    """
    containers, first, volumes = (spec.get(field) or [] for field in ("containers", "initContainers", "volumes"))
    if not all(isinstance(part, list) for part in (containers, first, volumes)):
        return dict(spec)
    main = next((each for each in containers if isinstance(each, Mapping) and each.get("name") == container_name), None)
    if main is None or not all(isinstance(main.get(field) or [], list) for field in ("env", "envFrom", "volumeMounts")):
        return dict(spec)
    return {
        **spec,
        "initContainers": [
            _copy(library_image),
            *([_set_up(main, setup)] if setup else []),
            _check(main, is_on_volumes=is_on_volumes),
            *first,
        ],
        "containers": [_importing(each) if each is main else each for each in containers],
        "volumes": [*volumes, {"name": _VOLUME, "emptyDir": {}}],
    }


def _copy(library_image: str) -> dict[str, Any]:
    return {
        "name": _VOLUME,
        "image": library_image,
        "imagePullPolicy": "IfNotPresent",
        # With the archive's modes, so that any user of the image can compile the code there.
        "command": ["tar", "-x", "-p", "-f", _ARCHIVE, "-C", _DIRECTORY],
        "resources": INIT_RESOURCES,
        "securityContext": READ_ONLY,
        "volumeMounts": [_mount()],
    }


def _set_up(main: Mapping[str, Any], setup: Setup) -> dict[str, Any]:
    """Return the init container that runs the script: it is like Ray's container.

    It has the devices too: init containers end before the others start, and kubelet hands their devices on.
    """
    return {
        "name": Container.SETUP,
        **{field: main[field] for field in _SETUP_LIKE_RAYS if field in main},
        "command": ["bash", "-c", _escaped(_RUN_SETUP), "setup", str(setup.timeout_seconds), _escaped(setup.script)],
        # The condition quotes the script's last lines.
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


def _escaped(text: str) -> str:
    """Return the text so that Kubernetes does not replace its `$(NAME)`, which Bash must read."""
    return text.replace("$", "$$")


def _check(main: Mapping[str, Any], *, is_on_volumes: bool) -> dict[str, Any]:
    """Return the init container that looks at the main container's image, as its user."""
    volumes = (main.get("volumeMounts") or []) if is_on_volumes else []
    return {
        "name": Container.CHECK,
        **{field: main[field] for field in _LIKE_RAYS if field in main},
        "env": _of_python(main.get("env") or []),
        "command": ["python3", f"{_DIRECTORY}/workergroups_agent/check_image.py"],
        "resources": INIT_RESOURCES,
        "volumeMounts": [*volumes, _mount()],
    }


def _of_python(env: Sequence[Any]) -> list[Any]:
    """Return the variables that decide about Python, and those that they name; a pool may have many large ones."""
    needed, found = set(_PYTHON_VARIABLES), []
    for each in reversed(env):  # a variable names those before it
        if isinstance(_name(each), str) and each["name"] in needed:
            found.append(each)
            needed.update(_REFERENCE.findall(str(each.get("value"))))
    return found[::-1]


def _importing(main: Mapping[str, Any]) -> dict[str, Any]:
    """Return the container with the library on its PYTHONPATH, before the user's own entries."""
    env = main.get("env") or []
    theirs = next((each["value"] for each in env if _name(each) == _PATH and each.get("value")), None)
    ours = {"name": _PATH, "value": f"{_DIRECTORY}:{theirs}" if theirs else _DIRECTORY}
    # In the place of the user's, since later variables may name it, and it may name earlier ones.
    others = [each for each in env if _name(each) != _PATH]
    place = next((number for number, each in enumerate(env) if _name(each) == _PATH), len(others))
    return {
        **main,
        "env": [*others[:place], ours, *others[place:]],
        "volumeMounts": [*(main.get("volumeMounts") or []), _mount()],
    }


def _mount() -> dict[str, str]:
    return {"name": _VOLUME, "mountPath": _DIRECTORY}


def _name(variable: Any) -> Any:
    return variable.get("name") if isinstance(variable, Mapping) else None
