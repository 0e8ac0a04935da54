"""`RankGroup`: ranks that exist, called together; and `RoleGroup`: one of the roles that such ranks have."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import ray
from ray.actor import ActorHandle
from ray.exceptions import GetTimeoutError, RayActorError, RayTaskError

from workergroups.errors import GroupClosedError
from workergroups.rank_death import rank_died
from workergroups.single_controller.base import WorkerGroup
from workergroups.single_controller.base.bound_methods import bind_methods
from workergroups.single_controller.base.call_forms import first_by_name
from workergroups.single_controller.base.decorator import RegisteredMethod

from . import progress
from .call_progress import CallProgress
from .calls import Calls, calls_in_flight
from .closing import Closing
from .group_ranks import GroupRanks
from .late_call import late_call, stacks
from .rank_class import RayClassWithInitArgs
from .resource_pool import RayResourcePool


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
        self._call_timeout: float | None = None
        bind_methods(self, self._methods)

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

    @first_by_name("method_name")
    def execute_all_sync(self, method_name: str, /, *args: Any, **kwargs: Any) -> list[Any]:
        """Like ``execute_all``, but wait: return the ranks' results in rank order."""
        results: list[Any] = self._get(method_name, self.execute_all(method_name, *args, **kwargs))
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
        return self._get(method_name, self.execute_rank_zero(method_name, *args, **kwargs))

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
        before, self._call_timeout = self._call_timeout, seconds
        try:
            yield
        finally:
            self._call_timeout = before

    def stacks(self) -> dict[int, str]:
        """Return what each rank is doing now: its process and node, and the Python stacks of its threads.

        Any process on the cluster may ask, even while every rank is busy: ``attach(name).stacks()``.
        """
        return stacks(dict(enumerate(self._ranks.workers)))

    def calls(self) -> Calls:
        """Return the calls that ranks have not finished: rank, method, state, duration and the caller's job.

        Any process on the cluster may ask about the calls of any driver: ``print(attach(name).calls())``. The
        answer is about a second old: a call that has just begun may be missing, and one that has just ended listed.
        """
        return calls_in_flight(self._ranks.actor_ids)

    def spawn(self, prefix_set: Iterable[str]) -> dict[str, RoleGroup]:
        """Return a handle for each of these roles of a group of colocated roles, with that role's methods.

        Raises:
            ValueError: The ranks' class has no such role.
        """
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

    def _get(self, method_name: str, output: Any) -> Any:
        workers, timeout = self._ranks.workers, self._call_timeout
        refs = output if isinstance(output, list) else [output]
        try:
            return progress.get(output, timeout=timeout, describe=CallProgress(method_name, refs, workers))
        except RayTaskError:
            raise  # the method's own exception, which may be of any kind
        except RayActorError as error:
            died = rank_died(error, workers)
            if died is error:
                raise
            raise died from error
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
        methods = {
            name.removeprefix(f"{role}_"): registered
            for name, registered in whole._methods.items()
            if registered.role == role
        }
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
        self._call_timeout = whole._call_timeout
        self._is_closed = False

    def close(self) -> None:
        """Refuse further calls through this handle."""
        self._is_closed = True

    def _start(self, worker: ActorHandle, method_name: str, args: Any, kwargs: Any) -> Any:
        if self._is_closed:
            raise GroupClosedError(
                f"this group of role {self.role!r} is closed, so {method_name!r} cannot be called; spawn it again"
            )
        if method_name in self._methods:
            return super()._start(worker, f"{self.role}_{method_name}", args, kwargs)
        return super()._start(worker, "call_role", (self.role, method_name, *args), kwargs)
