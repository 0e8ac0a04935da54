"""Start the executor in the head's container, before Ray.

KubeRay 1.6 joins a container's command and arguments into a shell line, and runs it before its own `ray start`. It
leaves them unchanged if they contain `ray start`, or if an annotation asks for that.
"""

from collections.abc import Mapping
from typing import Any

from workergroups_api.manifest import Manifest
from workergroups_api.vocabulary import Container

_START = "{ python3 -m workergroups_agent.executor 127.0.0.1:6379 & }"
_OVERWRITE_ANNOTATION = "ray.io/overwrite-container-cmd"
_RAY_START = "ray start"


def with_executor(template: Manifest) -> Manifest:
    """Return the head's template with the executor in its container, before the command of the user's template.

    A template that is no pod stays as it is; the API server explains what is wrong with it.
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
            return container  # the image's own command, which the operator does not know
        return {**container, "command": ["/bin/sh", "-c", f'{_START}; exec "$@"', "sh", *command]}
    return {**container, "command": [_START, "&&", *command] if command or arguments else [_START]}


def _is_overwritten(template: Manifest) -> bool:
    annotations = template["metadata"].get("annotations")
    return isinstance(annotations, Mapping) and str(annotations.get(_OVERWRITE_ANNOTATION)).lower() == "true"


def _is_head(container: Any) -> bool:
    return isinstance(container, Mapping) and container.get("name") == Container.HEAD


def _are_words(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(word, str) for word in value)
