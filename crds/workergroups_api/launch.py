"""What the ranks of a group are made from, and the digests by which operator and agent speak of one version of it."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from workergroups_api.model import ApiModel


class Launch(ApiModel):
    """Class, constructor's arguments and environment of a group's ranks, as the user wrote them."""

    class_path: str
    init_args: tuple[Any, ...] = ()
    init_kwargs: dict[str, Any] = {}
    env: dict[str, str] = {}
    # Name of the ConfigMap with the code; None if the class is in the image.
    config_map: str | None = None


def digest(value: Any) -> str:
    """A short name for a JSON value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


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
