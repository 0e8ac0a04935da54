"""The executor in the head's container: what starts it goes before the command that starts Ray.

KubeRay 1.6 joins a container's command and arguments to a line of the shell, and puts it before its own `ray start`.
It leaves them as they are if they have `ray start` in them, or if an annotation asks for it.
"""

from collections.abc import Mapping
from typing import Any

from workergroups_api.manifest import Manifest
from workergroups_api.vocabulary import Container

_START = "{ python3 -m workergroups_agent.executor 127.0.0.1:6379 & }"
_OVERWRITE_ANNOTATION = "ray.io/overwrite-container-cmd"
_RAY_START = "ray start"


def with_executor(template: Manifest) -> Manifest:
    """Return the head's template with the executor in its container, before whatever a user's template runs there.

    What is no pod is returned as it is, and the API server says what is wrong with it.
    """
    spec = template["spec"]
    containers = spec.get("containers") if isinstance(spec, Mapping) else None
    if not isinstance(containers, list):
        return template
    is_overwritten = _is_overwritten(template)
    served = [_with_command(each, is_overwritten) if _is_head(each) else each for each in containers]
    return template | {"spec": {**spec, "containers": served}}


def _with_command(container: Mapping[str, Any], is_overwritten: bool) -> Mapping[str, Any]:
    command, arguments = container.get("command") or [], container.get("args") or []
    if not _are_words(command) or not _are_words(arguments):
        return container
    if is_overwritten or _RAY_START in " ".join([*command, *arguments]):
        if not command:
            return container  # the image's own command, which nobody here knows
        return {**container, "command": ["/bin/sh", "-c", f'{_START}; exec "$@"', "sh", *command]}
    return {**container, "command": [_START, "&&", *command] if command or arguments else [_START]}


def _is_overwritten(template: Manifest) -> bool:
    annotations = template["metadata"].get("annotations")
    return isinstance(annotations, Mapping) and str(annotations.get(_OVERWRITE_ANNOTATION)).lower() == "true"


def _is_head(container: Any) -> bool:
    return isinstance(container, Mapping) and container.get("name") == Container.HEAD


def _are_words(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(word, str) for word in value)
