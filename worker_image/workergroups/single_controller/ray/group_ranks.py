"""The ranks of a group, as all handles on them in this process share them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from ray.actor import ActorHandle

from workergroups import tracing
from workergroups.announcements.notices import NoticeReader
from workergroups.errors import GroupClosedError
from workergroups.ray_private.actors import actor_id, has_parameter, method_names

from . import group_record


class GroupRanks:
    """Existing ranks, which a group and the groups of its roles share.

    Args:
        workers: The ranks' actor handles, in rank order.
        names: Their actor names; may be empty.
        record_timeout: Seconds to wait for what rank 0 publishes about the group.
        master: Address and port at which the ranks meet, if the user chose them.
    """

    def __init__(
        self,
        workers: Sequence[ActorHandle],
        names: Sequence[str],
        *,
        record_timeout: float,
        master: tuple[str, str] | None,
    ) -> None:
        self.workers = list(workers)
        self.names = list(names)
        self.is_closed = False
        self._record_timeout = record_timeout
        self._master = master

    @property
    def actor_ids(self) -> list[str]:
        """The ranks' hexadecimal actor ids, in rank order."""
        return [actor_id(worker) for worker in self.workers]

    @property
    def master(self) -> tuple[str, str]:
        """The address and port at which the ranks meet; waits until rank 0's process is up."""
        if self._master is None:
            record = self.record()
            self._master = record.master_addr, record.master_port
        return self._master

    @cached_property
    def notices(self) -> NoticeReader:
        """What finds the notices of the ranks."""
        return NoticeReader(self.actor_ids)

    def stop_notices(self) -> bool:
        """Let no notice wait for this driver until it looks for one again; return whether it has looked before."""
        has_looked = "notices" in self.__dict__
        if has_looked:
            self.notices.stop()
        return has_looked

    def record(self) -> group_record.GroupRecord:
        """Return what rank 0 has published about the group; waits until its process is up."""
        return group_record.wait_for_record(actor_id(self.workers[0]), timeout=self._record_timeout)

    def start(self, worker: ActorHandle, method_name: str, args: Any, kwargs: Any) -> Any:
        """Start a method on one rank; return its object reference.

        Raises:
            AttributeError: The class has no such method.
            GroupClosedError: The group is closed.
            TypeError: The method does not take these arguments.
        """
        if self.is_closed:
            raise GroupClosedError(f"this group is closed, so {method_name!r} cannot be called; create a new group")
        try:
            method = getattr(worker, method_name)
        except AttributeError:
            known = sorted(name for name in method_names(worker) if not name.startswith("_"))
            raise AttributeError(f"the ranks' class has no method {method_name!r}; it has {', '.join(known)}") from None
        span = tracing.present_call()
        # Ranks with an older library, and methods that are not registered, cannot have it.
        if span is not None and has_parameter(worker, method_name, tracing.NOTE):
            kwargs = {**kwargs, tracing.NOTE: span}
        try:
            return method.remote(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{method_name!r}: {error}") from error
