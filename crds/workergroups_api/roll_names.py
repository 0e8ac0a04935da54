"""The name of a pool's restart: the digest of what a user asked for, and after a slash that of the template."""

from collections.abc import Mapping

from workergroups_api.launch import digest
from workergroups_api.names import RESTARTED_AT_ANNOTATION

SEPARATOR = "/"


def asked_roll(metadata: Mapping[str, object], last: str | None) -> str | None:
    """Return the name of the restart that a user has asked for since the last one; None if there is none."""
    annotations = metadata.get("annotations")
    asked = annotations.get(RESTARTED_AT_ANNOTATION) if isinstance(annotations, Mapping) else None
    if asked is None or (last is not None and last.partition(SEPARATOR)[0] == digest(asked)):
        return None
    return digest(asked)
