"""Names become single segments of a URL's path, or no request is sent."""

import re

from kubernetes.aio.dynamic import Resource, Subresource

from workergroups_api.text import plain

_SEGMENT = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._:-]{0,252}")


class InvalidName(ValueError):
    """The name of an object is not valid."""


class _Safe:
    """The part of the client that builds paths."""

    def path(self, name: str | None = None, namespace: str | None = None) -> str:
        for segment in (name, namespace):
            if segment is not None and not _SEGMENT.fullmatch(segment):
                raise InvalidName(f"{plain(ascii(segment), 100)} is no name of an object")
        path: str = super().path(name, namespace)  # type: ignore[misc]
        return path


class SafeResource(_Safe, Resource):  # type: ignore[misc]
    """A kind of objects, with safe paths."""


class SafeSubresource(_Safe, Subresource):  # type: ignore[misc]
    """A subresource, such as the status, with safe paths."""
