"""Kinds whose requests go to the object that is named, or nowhere."""

from kubernetes.aio.dynamic import Resource, Subresource

from workergroups_common.path_segment import path_segment


class _Safe:
    """The part of the client that builds paths."""

    def path(self, name: str | None = None, namespace: str | None = None) -> str:
        for segment in (name, namespace):
            if segment is not None:
                path_segment(segment)
        path: str = super().path(name, namespace)  # type: ignore[misc]
        return path


class SafeResource(_Safe, Resource):  # type: ignore[misc]
    """A kind of objects, with safe paths."""


class SafeSubresource(_Safe, Subresource):  # type: ignore[misc]
    """A subresource, such as the status, with safe paths."""
