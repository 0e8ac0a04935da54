"""The set-up script of a pool, in an init container that is like Ray's container."""

from collections.abc import Mapping
from typing import Any

from workergroups_api.pod_settings import Setup
from workergroups_api.vocabulary import Container

_LIKE_RAYS = ("image", "imagePullPolicy", "env", "envFrom", "securityContext", "resources", "volumeMounts")
# Bash runs the script as a separate program, so that `exit` in it ends only the script.
_RUN = """\
timeout --kill-after=10 "$1" bash -e -o pipefail -c "$2" && exit
code=$?
if (( SECONDS >= $1 )); then echo "spec.setup: ended after $1 s, its timeoutSeconds" >&2; fi
exit $code
"""


def setup_containers(main: Mapping[str, Any], setup: Setup | None) -> list[dict[str, Any]]:
    """Return the init container that runs the script; none without a script.

    It has the devices too: init containers end before the others start, and kubelet hands their devices on.
    """
    if setup is None:
        return []
    return [
        {
            "name": Container.SETUP,
            **{field: main[field] for field in _LIKE_RAYS if field in main},
            "command": ["bash", "-c", _escaped(_RUN), "setup", str(setup.timeout_seconds), _escaped(setup.script)],
            # The condition quotes the script's last lines.
            "terminationMessagePolicy": "FallbackToLogsOnError",
        }
    ]


def _escaped(text: str) -> str:
    """Return the text so that Kubernetes does not replace its `$(NAME)`, which Bash must read."""
    return text.replace("$", "$$")
