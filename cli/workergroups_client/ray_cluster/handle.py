"""The common part of pools and groups: a name, a status, and a connection to the Ray cluster."""

from __future__ import annotations

from functools import cached_property
from typing import TypeVar

from ..api_server.cluster import Cluster
from ..errors import NotFoundError
from ..objects import names
from ..objects.names import Target
from ..objects.status import Status, status_of
from ..objects.suspending import begin_to_wake, wait_until_suspended
from ..waiting import Tell
from .connection import RayConnection

_Self = TypeVar("_Self", bound="Handle")


class Handle:
    """A handle on an existing pool or group; the connection to Ray lasts until `close`."""

    def __init__(self, cluster: Cluster, target: Target, tell: Tell) -> None:
        self.cluster, self.target, self._tell = cluster, target, tell

    @property
    def name(self) -> str:
        """The name of the pool or group."""
        return self.target.name

    @property
    def ray_cluster(self) -> str:
        """The name of the RayCluster, which other pools may share."""
        return names.ray_cluster(self.cluster, self.target)

    @property
    def status(self) -> Status:
        """The present status."""
        return status_of(names.find(self.cluster, f"{self.target.what}/{self.name}"))

    @cached_property
    def ray(self) -> RayConnection:
        """A connection to the Ray cluster, opened at the first use; `close` ends it."""
        return RayConnection(self.cluster, self.ray_cluster, tell=self._tell)

    def renew(self) -> None:
        """Find the object again, and open another connection at the next use.

        Raises:
            NotFoundError: The object was deleted, also if there is another one of its name.
        """
        found = names.find(self.cluster, f"{self.target.what}/{self.name}", self.target.what)
        if found.uid != self.target.uid:
            raise NotFoundError(f"{self.target} was deleted, and created again")
        self.close()
        self.__dict__.pop("ray", None)
        self.target = found

    def suspend(self) -> None:
        """Give back what it holds: the pods of a pool, the ranks of a group. ``wait_suspended`` waits for the end."""
        self.cluster.edit(self.target.kind, self.name, {"suspend": True})

    def wait_suspended(self, seconds: float) -> None:
        """Wait until nothing of it is left.

        Raises:
            ClientError: It was resumed meanwhile.
            DeadlineError: Something is left after that many seconds; the message says what.
        """
        wait_until_suspended(self.cluster, self.target, self._tell, seconds)

    def resume(self) -> None:
        """Start it again, with new ranks; also a pool that the operator has suspended because it was idle."""
        self.cluster.edit(self.target.kind, self.name, {"suspend": False})
        if self.target.what == names.POOL:
            begin_to_wake(self.cluster, self.target, self._tell)

    def close(self) -> None:
        """Close the connection to the Ray cluster, if it is open."""
        if "ray" in self.__dict__:
            self.ray.close()

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
