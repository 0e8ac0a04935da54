"""What the ranks of a group are created from, and its digests, by which operator and agent name one version of it."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from workergroups_api.model import ApiModel

# Ray passes the environment to the process of a rank in one argument, which the kernel limits to 128 KiB, next to other
# things. A larger one blocks the raylet, which waits a minute for the process, and with it all ranks on the node.
MAX_ENV_BYTES = 96 * 2**10


class RoleLaunch(ApiModel):
    """Class and constructor's arguments of one role."""

    name: str
    class_path: str
    init_args: tuple[Any, ...] = ()
    init_kwargs: dict[str, Any] = {}


class RunLaunch(ApiModel):
    """The method that is called on all ranks, and its keyword arguments."""

    method: str
    keywords: dict[str, Any] = {}


class CodeItem(ApiModel):
    """A file of the code: a key of its ConfigMap, and the path of the file."""

    key: str
    path: str


class Launch(ApiModel):
    """What a group's ranks are created from, as the user wrote it: one class or several roles, and an environment."""

    # The class, and its constructor's arguments below; None if there are roles.
    class_path: str | None = None
    init_args: tuple[Any, ...] = ()
    init_kwargs: dict[str, Any] = {}
    # None if there is one class; then it is not part of a digest.
    roles: tuple[RoleLaunch, ...] | None = None
    env: dict[str, str] = {}
    # References to Secrets and ConfigMaps with more variables, as the user wrote them; None if there are none. Their
    # values are in no launch: see `workergroups.node.group_env`.
    env_sources: tuple[dict[str, Any], ...] | None = None
    # Name of the ConfigMap with the code; None if the classes are elsewhere.
    config_map: str | None = None
    # Which of its keys are files, and their paths; None if all are, under their own names.
    config_map_items: tuple[CodeItem, ...] | None = None
    # The directory in the pods with the code; None if the classes are elsewhere.
    code_path: str | None = None
    # Digest of the annotation by which the user last restarted the ranks; None if there is none.
    restarted: str | None = None
    # Whether ranks pause for a debugger before an exception leaves them. None if not; then it is not part of a digest.
    post_mortem: bool | None = None
    # What is called on all ranks once they are ready. None if nothing is; then it is not part of a digest.
    run: RunLaunch | None = None


def digest(value: Any) -> str:
    """Return a short name for a JSON value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def env_bytes(env: Mapping[str, str]) -> int:
    """Return the most bytes that an environment can take in that argument: JSON, which Ray may escape once more."""
    return len(json.dumps(json.dumps(dict(env))))


def code_digest(files: Mapping[str, str]) -> str:
    """Return a short name for the content of a code ConfigMap."""
    return digest(dict(files))


def revision(launch: Launch, code: str | None) -> str | None:
    """Return a short name for what ranks are created from; None while the code that they need is not known.

    `code` is the `code_digest` of what the ConfigMap holds now, None if there is no such ConfigMap.
    """
    if launch.config_map is None:
        return digest([launch.to_json(), None])
    return None if code is None else digest([launch.to_json(), code])
