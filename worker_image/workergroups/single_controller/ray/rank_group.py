"""`RankGroup`: ranks that exist, called together; and `RoleGroup`: one of the roles that such ranks have."""

from __future__ import annotations

import contextlib
import copy
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import ray
from ray.actor import ActorHandle
from ray.exceptions import GetTimeoutError

from workergroups.deaths.rank_death import CALL_ERRORS, raise_error_of_call
from workergroups.errors import GroupClosedError, NotAttachedError
from workergroups.node.notice import Notice
from workergroups.single_controller.base import WorkerGroup
from workergroups.single_controller.base.call_forms import first_by_name
from workergroups.single_controller.base.decorator import RegisteredMethod, bound_methods

from . import progress
from .calls import Calls, calls_in_flight
from .closing import Closing
from .group_ranks import GroupRanks
from .late_call import late_call, stacks
from .rank_class import RayClassWithInitArgs
from .resource_pool import RayResourcePool
from .taken_names import check_methods

if TYPE_CHECKING:
    from typing_extensions import Self  # in typing since Python 3.11

_RENEW_TIMEOUT = 600.0
_OF_THE_RANKS = (
    *("_ranks", "_methods", "resource_pool", "ray_cls_with_init", "incarnation", "_find_next"),
    *("_dispatch_info", "_collect_info", "_mesh_plans"),
)
"""The attributes that a handle takes over with other ranks, apart from the methods."""
_moving = threading.Lock()
"""Held while handles get other ranks, and while groups of roles are added to them."""


@dataclass
class _Handle:
    """What belongs to a handle, whatever ranks it has."""

    call_timeout: float | None = None
    is_closed: bool = False


class RankGroup(Closing, WorkerGroup):
    """Ranks that exist, with a method for each that their class registers; subclasses say whose ranks these are.

    Args:
        ranks: The ranks, which other groups may share.
        methods: How the registered methods are called, by name.
        resource_pool: Where the ranks run, if that is known.
        ray_cls_with_init: The ranks' class and the arguments of its constructor, if they are known.
        name_prefix: Begins the ranks' names.
        incarnation: The number of these ranks' incarnation, for a group that `attach` returned.
    """

    def __init__(
        self,
        ranks: GroupRanks,
        methods: Mapping[str, RegisteredMethod],
        *,
        resource_pool: RayResourcePool | None,
        ray_cls_with_init: RayClassWithInitArgs | None,
        name_prefix: str,
        incarnation: int | None,
    ) -> None:
        super().__init__()
        self.resource_pool = resource_pool
        self.ray_cls_with_init = ray_cls_with_init
        self.name_prefix = name_prefix
        self.incarnation = incarnation
        self._ranks = ranks
        self._methods = dict(methods)
        self._handle = _Handle()
        self._roles: WeakSet[RoleGroup] = WeakSet()
        # Of a handle that can be renewed: the group on its present ranks, which keeps them; and what finds the next.
        self._present: Self | None = None
        self._find_next: Callable[[float], RankGroup | None] | None = None
        check_methods("the ranks' class", self._methods)
        vars(self).update(bound_methods(self, self._methods))

    @property
    def workers(self) -> list[ActorHandle]:
        """The ranks' actor handles, in rank order."""
        return self._ranks.workers

    @property
    def worker_names(self) -> list[str]:
        """The ranks' actor names, in rank order."""
        return self._ranks.names

    @property
    def world_size(self) -> int:
        """The number of ranks."""
        return len(self._ranks.workers)

    @property
    def master_address(self) -> str:
        """The address at which the ranks meet; waits until rank 0's process is up."""
        return self._ranks.master[0]

    @property
    def master_port(self) -> str:
        """The port at which the ranks meet; waits until rank 0's process is up."""
        return self._ranks.master[1]

    @property
    def notice(self) -> Notice | None:
        """The notice of the first of the ranks that is about to end; ``None`` while there is none.

        Ranks end with their node, or all together when their group is changed, restarted, suspended or deleted. Reading
        it asks Ray's control service (the GCS), and none of the ranks. From the first time on, what gives notice waits
        for this driver until it calls ``answer_notice``, or until its time is over.
        """
        return self._ranks.notices.look()

    def answer_notice(self) -> None:
        """Let the ranks end whose notice was read, and return when they have; at once if none was read.

        So call it when this driver has done what it had to do, such as to save. Calls of these ranks then raise
        `RankDiedError`, and nothing is lost that was done after.
        """
        self._ranks.notices.answer()

    @first_by_name("method_name")
    def execute_all_sync(self, method_name: str, /, *args: Any, **kwargs: Any) -> list[Any]:
        """Like ``execute_all``, but wait: return the ranks' results in rank order."""
        group = self._for_one_call()
        results: list[Any] = group._get(method_name, group.execute_all(method_name, *args, **kwargs))
        return results

    @first_by_name("method_name")
    def execute_all_async(self, method_name: str, /, *args: Any, **kwargs: Any) -> list[Any]:
        """Start a method on all ranks; return object references in rank order.

        When every argument is a list of ``world_size``, element i goes to rank i. Otherwise, all ranks get the same.

        Raises:
            AttributeError: The class has no such method.
            GroupClosedError: The group is closed.
        """
        workers = self._ranks.workers
        size = len(workers)
        values = (*args, *kwargs.values())
        if all(isinstance(value, list) and len(value) == size for value in values):
            return [
                self._start(
                    worker,
                    method_name,
                    [value[rank] for value in args],
                    {key: value[rank] for key, value in kwargs.items()},
                )
                for rank, worker in enumerate(workers)
            ]
        return [self._start(worker, method_name, args, kwargs) for worker in workers]

    @first_by_name("method_name")
    def execute_all(self, method_name: str, /, *args: Any, **kwargs: Any) -> list[Any]:
        """Do the same as ``execute_all_async``."""
        return self.execute_all_async(method_name, *args, **kwargs)

    @first_by_name("method_name")
    def execute_rank_zero_sync(self, method_name: str, /, *args: Any, **kwargs: Any) -> Any:
        """Run a method on rank 0; return its result."""
        group = self._for_one_call()
        return group._get(method_name, group.execute_rank_zero(method_name, *args, **kwargs))

    @first_by_name("method_name")
    def execute_rank_zero_async(self, method_name: str, /, *args: Any, **kwargs: Any) -> Any:
        """Start a method on rank 0; return its object reference. Errors are those of ``execute_all_async``."""
        return self._start(self._ranks.workers[0], method_name, args, kwargs)

    @first_by_name("method_name")
    def execute_rank_zero(self, method_name: str, /, *args: Any, **kwargs: Any) -> Any:
        """Do the same as ``execute_rank_zero_async``."""
        return self.execute_rank_zero_async(method_name, *args, **kwargs)

    def share(self, value: Any) -> Any:
        """Put a value into the object store once, so that many ranks can read it."""
        return ray.put(value)

    @contextlib.contextmanager
    def deadline(self, seconds: float) -> Iterator[None]:
        """Limit each call in this block that waits for its results to ``seconds``.

        A late call raises `LateCallError`, which lists the ranks that have not returned and where they are.
        """
        before, self._handle.call_timeout = self._handle.call_timeout, seconds
        try:
            yield
        finally:
            self._handle.call_timeout = before

    def stacks(self) -> dict[int, str]:
        """Return what each rank is doing now: its process and node, and the Python stacks of its threads.

        Any process on the cluster may ask, even while every rank is busy: ``attach(name).stacks()``.
        """
        return stacks(dict(enumerate(self._ranks.workers)))

    def calls(self) -> Calls:
        """Return the calls that ranks have not finished: rank, method, state, duration and the caller's job.

        Any process on the cluster may ask about the calls of any driver: ``print(attach(name).calls())``. The
        answer is about a second old: a call that has just begun may be missing, and one that has just ended listed.
        If a caller has ended, the ranks are asked for their stacks, to know whether they still run its calls.
        """
        workers = self._ranks.workers
        return calls_in_flight(self._ranks.actor_ids, lambda ranks: stacks({rank: workers[rank] for rank in ranks}))

    def renew(self, *, timeout: float = _RENEW_TIMEOUT) -> Self:
        """Wait for the ranks that replace dead ones of an attached group, give them to this handle, and return it.

        Call it after a `RankDiedError`, and then restore what the dead ranks had in memory. By the group's
        ``failurePolicy``, that is the next incarnation, or with ``restart: Rank`` this one, where the ranks that live
        stay as they are. It returns at once if those ranks exist already, or if none are needed: all of the handle's
        ranks are alive, and no others are announced. So a driver of several groups may renew all of them, whichever
        has lost a rank. The groups of roles that were spawned from this group get the new ranks, too, or are closed if
        these do not have the role. Calls that have begun stay with the old ranks. If these are of an old incarnation,
        they raise `IncarnationReplacedError`, and so do the futures of earlier calls.

        Args:
            timeout: Seconds to wait until all of these ranks exist, and rank 0's process is up.

        Raises:
            GroupNotFoundError: They do not exist in time; the message names the ranks that do.
            GroupFailedError: The operator has given up, by the group's ``failurePolicy``. It is a `GroupNotFoundError`.
            NotAttachedError: The group was not returned by `attach`.
            GroupClosedError: The group is closed.
        """
        if self._find_next is None:
            raise NotAttachedError(
                f"group {self.name_prefix!r} was not returned by workergroups.attach(), so its ranks are not replaced: "
                "close it, and create it again"
            )
        if self._ranks.is_closed:
            raise GroupClosedError(f"group {self.name_prefix!r} is closed, so it cannot be renewed: attach to it again")
        before = self._present
        # This driver may wait for long, and calls none of these ranks meanwhile.
        has_looked = self._ranks.stop_notices()
        found = self._find_next(timeout)
        if found is None and has_looked:
            self._ranks.notices.look()
        with _moving:
            if found is not None and self._present is before:  # else another thread has renewed this handle
                self._move_with_roles(found._for_one_call())
        return self

    def spawn(self, prefix_set: Iterable[str]) -> dict[str, RoleGroup]:
        """Return a handle for each of these roles of a group of colocated roles, with that role's methods.

        Raises:
            ValueError: The ranks' class has no such role.
        """
        with _moving:
            return {role: RoleGroup(self, role) for role in prefix_set}

    def fuse(self, prefix_set: Iterable[str]) -> None:
        """Make each of these roles an attribute of this group: ``group.{role}.{method}(...)``.

        Raises:
            ValueError: The ranks' class has no such role.
        """
        for role, group in self.spawn(prefix_set).items():
            setattr(self, role, group)

    def __getattr__(self, name: str) -> Any:
        # This is called only for unknown names: the registered methods are attributes.
        if name.startswith("_"):
            raise AttributeError(name)
        known = ", ".join(sorted(method for method in self._methods if not method.startswith("_")))
        raise AttributeError(
            f"this group has no method {name!r}; it has {known or 'none'}. "
            f"Decorate {name!r} with @register in the ranks' class, or call execute_all_sync({name!r}, ...)"
        )

    def _start(self, worker: ActorHandle, method_name: str, args: Any, kwargs: Any) -> Any:
        return self._ranks.start(worker, method_name, args, kwargs)

    def _for_one_call(self) -> Self:
        return self if self._present is None else self._present

    def _renewable(self, find_next: Callable[[float], RankGroup | None]) -> Self:
        """Return a handle on the ranks of this group that `renew` can give others; this group keeps its ranks.

        Args:
            find_next: Waits for up to the given seconds for a group on the next incarnation; ``None`` if these ranks
                are all alive and current.
        """
        self._find_next = find_next
        handle = copy.copy(self)
        handle._move(self)
        return handle

    def _move_with_roles(self, ranks: RankGroup) -> None:
        self._move(ranks)
        for group in self._roles:
            if _methods_of_role(ranks, group.role):
                group._move(RoleGroup(ranks, group.role))
            else:
                group.close()

    def _move(self, ranks: RankGroup) -> None:
        """Give this handle the ranks of a group that keeps them, all at once: other threads may be calling."""
        state = {name: value for name, value in vars(self).items() if name not in self._methods}
        state |= {name: getattr(ranks, name) for name in _OF_THE_RANKS}
        ranks._handle = self._handle
        self.__dict__ = {**state, "_present": ranks, **bound_methods(self, ranks._methods)}

    def _get(self, method_name: str, output: Any) -> Any:
        workers, timeout = self._ranks.workers, self._handle.call_timeout
        refs = output if isinstance(output, list) else [output]
        try:
            return progress.get(output, timeout=timeout, describe=progress.CallProgress(method_name, refs, workers))
        except CALL_ERRORS as error:  # first, since a method's own exception may be a GetTimeoutError as well
            raise_error_of_call(error, refs, workers, self.name_prefix)
        except GetTimeoutError:
            raise late_call(method_name, refs, workers, timeout or 0) from None


class RoleGroup(RankGroup):
    """One role of a group whose ranks have several: `spawn` returns it, and ``group.{role}`` is one after `fuse`.

    ``execute_all`` and ``execute_rank_zero`` run methods of the role. It shares the ranks with the whole group: closing
    it leaves them alone, and closing the whole group closes it.

    Where verl returns a `RayWorkerGroup`, this is returned, so ``isinstance(role_group, RayWorkerGroup)`` is true. But
    it creates no ranks, and so inherits nothing of how that class does.
    """

    def __init__(self, whole: RankGroup, role: str) -> None:
        methods = _methods_of_role(whole, role)
        if not methods:
            roles = sorted({registered.role for registered in whole._methods.values()} - {""})
            raise ValueError(
                f"this group has no role {role!r} with registered methods; it has {', '.join(roles) or 'none'}"
            )
        super().__init__(
            whole._ranks,
            methods,
            resource_pool=whole.resource_pool,
            ray_cls_with_init=whole.ray_cls_with_init,
            name_prefix=whole.name_prefix,
            incarnation=whole.incarnation,
        )
        self.role = role
        self._whole = whole
        self._handle.call_timeout = whole._handle.call_timeout
        if whole._present is not None:
            self._move(RoleGroup(whole._present, role))
            whole._roles.add(self)

    def renew(self, *, timeout: float = _RENEW_TIMEOUT) -> Self:
        """Renew the whole group, with all of its roles, and return this handle; see `RayWorkerGroup.renew`."""
        self._whole.renew(timeout=timeout)
        return self

    def close(self) -> None:
        """Refuse further calls through this handle."""
        self._handle.is_closed = True

    def _start(self, worker: ActorHandle, method_name: str, args: Any, kwargs: Any) -> Any:
        if self._handle.is_closed:
            raise GroupClosedError(
                f"this group of role {self.role!r} is closed, so {method_name!r} cannot be called; spawn it again"
            )
        if method_name in self._methods:
            return super()._start(worker, f"{self.role}_{method_name}", args, kwargs)
        return super()._start(worker, "call_role", (self.role, method_name, *args), kwargs)


def _methods_of_role(whole: RankGroup, role: str) -> dict[str, RegisteredMethod]:
    return {
        name.removeprefix(f"{role}_"): registered
        for name, registered in whole._methods.items()
        if registered.role == role
    }
