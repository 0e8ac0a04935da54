"""What the ranks of a group are made from, and the digests by which operator and agent speak of one version of it."""

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


class Launch(ApiModel):
    """What a group's ranks are made from, as the user wrote it: one class or several roles, and their environment."""

    # With the arguments of its constructor; None where there are roles.
    class_path: str | None = None
    init_args: tuple[Any, ...] = ()
    init_kwargs: dict[str, Any] = {}
    # None, and so no part of a digest, where there is one class.
    roles: tuple[RoleLaunch, ...] | None = None
    env: dict[str, str] = {}
    # Name of the ConfigMap with the code; None if the classes are in the image.
    config_map: str | None = None
    # Digest of the annotation by which the user last asked for ranks made anew; None if it is not there.
    restarted: str | None = None
    # Whether ranks pause for a debugger before an exception leaves them; None, and so no part of a digest, if not.
    post_mortem: bool | None = None


def digest(value: Any) -> str:
    """A short name for a JSON value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def env_bytes(env: Mapping[str, str]) -> int:
    """Return how much of that argument an environment takes at most: JSON, which Ray may escape once more."""
    return len(json.dumps(json.dumps(dict(env))))


def code_digest(files: Mapping[str, str]) -> str:
    """A short name for the content of a code ConfigMap."""
    return digest(dict(files))


def revision(launch: Launch, code: str | None) -> str | None:
    """A short name for what ranks are made from; None while the code that it needs is not known.

    `code` is the `code_digest` of the ConfigMap's present content, None if there is no such ConfigMap.
    """
    if launch.config_map is None:
        return digest([launch.to_json(), None])
    return None if code is None else digest([launch.to_json(), code])
