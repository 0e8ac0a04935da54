"""`RayWorkerGroup`: the ranks of one class on a resource pool, called together."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

import ray
from ray.actor import ActorHandle
from ray.exceptions import GetTimeoutError, RayActorError, RayTaskError

from workergroups.debugger import pauses
from workergroups.errors import GroupClosedError
from workergroups.naming import RankName
from workergroups.ray_private.actors import actor_id, method_names
from workergroups.ray_private.cluster_state import all_dead
from workergroups.single_controller.base import WorkerGroup
from workergroups.single_controller.base.bound_methods import bind_methods
from workergroups.single_controller.base.call_forms import first_by_name
from workergroups.single_controller.base.decorator import RegisteredMethod, registered_methods

from . import group_record, progress
from .call_progress import CallProgress
from .calls import Calls, calls_in_flight
from .late_call import late_call, stacks
from .method_table import restore_signatures, unpickle_methods
from .rank_class import RayClassWithInitArgs
from .rank_death import rank_died
from .ranks import check_worker_env, create_ranks
from .resource_pool import RayResourcePool, random_prefix
from .waiting import wait_for_end

if TYPE_CHECKING:
    from typing_extensions import Self  # in typing since Python 3.11


class RayWorkerGroup(WorkerGroup):
    """Ranks of one class, one Ray actor on each of the pool's processes.

    The group has a method for each that the class registers with ``@register``; any other method of the class runs
    through ``execute_all`` and ``execute_rank_zero``. Constructing a group does not wait for its ranks: the first call
    does. ``close()``, or leaving a ``with`` block, ends the ranks that this group created.

    Attributes:
        incarnation: Which making of its WorkerGroup's ranks these are, for a group that `attach` returned.

    Args:
        resource_pool: Where the ranks run; ``None`` for a handle on ranks that exist (see ``from_detached``).
        ray_cls_with_init: The ranks' class and the arguments of its constructor.
        bin_pack: Whether the processes of one entry of the pool must be on one node.
        name_prefix: Begins the ranks' names; random by default.
        detached: Whether the ranks outlive the driver.
        worker_names: The names of ranks that exist, in rank order.
        worker_handles: Their handles, instead of finding them by name.
        ray_wait_register_center_timeout: Seconds until rank 0 must have said where the ranks meet.
        master_addr: The address at which the ranks meet, given together with ``master_port``. By default, rank 0's
            process chooses both.
        master_port: The port at which the ranks meet.
        use_gpu: Whether each rank takes its share of a GPU; as the pool says by default.
        device_name: ``"cuda"``, ``"amd"``, ``"npu"``, or ``"cpu"`` for GPUs that are but numbers in Ray.
        worker_env: More environment variables for the ranks' processes.

    Raises:
        PlacementTimeoutError: The pool's resources are not there; says which.
        ValueError: ``worker_env`` sets a protected variable, or one of ``master_addr`` and ``master_port`` is missing.
        TypeError: The class's constructor does not take the arguments.
    """

    def __init__(
        self,
        resource_pool: RayResourcePool | None = None,
        ray_cls_with_init: RayClassWithInitArgs | None = None,
        bin_pack: bool = True,
        name_prefix: str | None = None,
        detached: bool = False,
        worker_names: Sequence[str] | None = None,
        worker_handles: Sequence[ActorHandle] | None = None,
        ray_wait_register_center_timeout: float = group_record.RECORD_TIMEOUT,
        *,
        master_addr: str | None = None,
        master_port: str | None = None,
        use_gpu: bool | None = None,
        device_name: str = "cuda",
        worker_env: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__()
        self.resource_pool = resource_pool
        self.ray_cls_with_init = ray_cls_with_init
        self.name_prefix = random_prefix() if name_prefix is None else name_prefix
        self._record_timeout = ray_wait_register_center_timeout
        self._master = _master(master_addr, master_port)
        self._closed = False
        self._call_timeout: float | None = None
        self._owns_ranks = resource_pool is not None
        self.incarnation: int | None = None
        if resource_pool is None:
            self._workers, self._worker_names = _find_ranks(worker_names, worker_handles)
            self.incarnation = _incarnation(self._worker_names)
        elif ray_cls_with_init is None:
            raise ValueError("a group on a resource pool needs ray_cls_with_init, the class of its ranks")
        else:
            self._worker_names = _worker_names(resource_pool, ray_cls_with_init, self.name_prefix)
            # What can be refused is refused before the pool waits for its resources.
            ray_cls_with_init.check_arguments()
            check_worker_env(worker_env or {})
            num_gpus = _gpu_share(resource_pool, use_gpu)
            self._workers = create_ranks(
                ray_cls_with_init,
                resource_pool.seats("STRICT_PACK" if bin_pack else "PACK", device_name),
                names=self._worker_names,
                detached=detached,
                worker_env=worker_env,
                num_gpus=num_gpus,
                device_name=device_name,
                wg_prefix=self.name_prefix,
                master=self._master,
            )
            resource_pool.note_ranks(actor_id(worker) for worker in self._workers)
        self._methods = self._registered_methods()
        bind_methods(self, self._methods)

    @classmethod
    def from_detached(
        cls,
        name_prefix: str | None = None,
        worker_names: Sequence[str] | None = None,
        worker_handles: Sequence[ActorHandle] | None = None,
        ray_cls_with_init: RayClassWithInitArgs | None = None,
        **kwargs: Any,
    ) -> Self:
        """A handle on ranks that another group or process created.

        The class is optional: without it, the group gets the methods that the ranks themselves have published. Closing
        the handle leaves the ranks alone.
        """
        return cls(
            resource_pool=None,
            ray_cls_with_init=ray_cls_with_init,
            name_prefix=name_prefix,
            worker_names=worker_names,
            worker_handles=worker_handles,
            **kwargs,
        )

    @property
    def workers(self) -> list[ActorHandle]:
        """The ranks' actor handles, in rank order."""
        return self._workers

    @property
    def worker_names(self) -> list[str]:
        """The ranks' actor names, in rank order."""
        return self._worker_names

    @property
    def world_size(self) -> int:
        """The number of ranks."""
        return len(self._workers)

    @property
    def master_address(self) -> str:
        """The address at which the ranks meet; waits until rank 0's process is up."""
        return self._find_master()[0]

    @property
    def master_port(self) -> str:
        """The port at which the ranks meet; waits until rank 0's process is up."""
        return self._find_master()[1]

    @first_by_name("method_name")
    def execute_all_sync(self, method_name: str, /, *args: Any, **kwargs: Any) -> list[Any]:
        """As ``execute_all``, but waits: the ranks' results in rank order."""
        results: list[Any] = self._get(method_name, self.execute_all(method_name, *args, **kwargs))
        return results

    @first_by_name("method_name")
    def execute_all_async(self, method_name: str, /, *args: Any, **kwargs: Any) -> list[Any]:
        """Start a method on all ranks; object references in rank order.

        When every argument is a list of ``world_size``, element i goes to rank i. Otherwise, all ranks get the same.

        Raises:
            AttributeError: The class has no such method.
            GroupClosedError: The group is closed.
        """
        workers = self._workers
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
        """The same as ``execute_all_async``."""
        return self.execute_all_async(method_name, *args, **kwargs)

    @first_by_name("method_name")
    def execute_rank_zero_sync(self, method_name: str, /, *args: Any, **kwargs: Any) -> Any:
        """Run a method on rank 0; its result."""
        return self._get(method_name, self.execute_rank_zero(method_name, *args, **kwargs))

    @first_by_name("method_name")
    def execute_rank_zero_async(self, method_name: str, /, *args: Any, **kwargs: Any) -> Any:
        """Start a method on rank 0; its object reference. Errors as of ``execute_all_async``."""
        return self._start(self._workers[0], method_name, args, kwargs)

    @first_by_name("method_name")
    def execute_rank_zero(self, method_name: str, /, *args: Any, **kwargs: Any) -> Any:
        """The same as ``execute_rank_zero_async``."""
        return self.execute_rank_zero_async(method_name, *args, **kwargs)

    def share(self, value: Any) -> Any:
        """Put a value into the object store once, so that many ranks can read it."""
        return ray.put(value)

    @contextlib.contextmanager
    def deadline(self, seconds: float) -> Iterator[None]:
        """Within this block, each call that waits for its results must have them after ``seconds``.

        A call that has not raises `LateCallError`, which lists the ranks that have not returned and where they are.
        """
        before, self._call_timeout = self._call_timeout, seconds
        try:
            yield
        finally:
            self._call_timeout = before

    def stacks(self) -> dict[int, str]:
        """What each rank is doing now: its process and node, and the Python stacks of its threads.

        Any process on the cluster may ask, also while every rank is busy: ``attach(name).stacks()``.
        """
        return stacks(dict(enumerate(self._workers)))

    def calls(self) -> Calls:
        """The calls that ranks have not finished: which rank, which method, running or queued, how long, whose.

        Any process on the cluster may ask, whoever made the calls: ``print(attach(name).calls())``. What happened in
        the last second may be missing.
        """
        return calls_in_flight([actor_id(worker) for worker in self._workers])

    def spawn(self, prefix_set: Iterable[str]) -> dict[str, RayWorkerGroup]:
        """One handle for each of these roles of a group of colocated roles, with that role's methods.

        Raises:
            ValueError: The ranks' class has no such role.
        """
        from .role_group import RoleGroup  # a role's group is a group itself

        return {role: RoleGroup(self, role) for role in prefix_set}

    def fuse(self, prefix_set: Iterable[str]) -> None:
        """Make each of these roles an attribute of this group: ``group.{role}.{method}(...)``.

        Raises:
            ValueError: The ranks' class has no such role.
        """
        for role, group in self.spawn(prefix_set).items():
            setattr(self, role, group)

    def close(self) -> None:
        """End the ranks, if this group created them, and return when they are gone; then refuse further calls.

        Warns of ranks that Ray has not ended after 30 s.
        """
        if self._closed:
            return
        self._closed = True
        if not self._owns_ranks:
            return
        actor_ids = [actor_id(worker) for worker in self._workers]
        for worker in self._workers:
            ray.kill(worker)
        wait_for_end(lambda: all_dead(actor_ids), what=f"the ranks of group {self.name_prefix!r}")
        group_record.forget(actor_ids[0])
        pauses.withdraw_all(actor_ids)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        # Only names that are nowhere else come here: the registered methods are attributes.
        if name.startswith("_"):
            raise AttributeError(name)
        known = ", ".join(sorted(method for method in self._methods if not method.startswith("_")))
        raise AttributeError(
            f"this group has no method {name!r}; it has {known or 'none'}. "
            f"Decorate {name!r} with @register in the ranks' class, or call execute_all_sync({name!r}, ...)"
        )

    def _start(self, worker: ActorHandle, method_name: str, args: Any, kwargs: Any) -> Any:
        if self._closed:
            raise GroupClosedError(f"this group is closed, so {method_name!r} cannot be called; make a new group")
        try:
            method = getattr(worker, method_name)
        except AttributeError:
            known = sorted(name for name in method_names(worker) if not name.startswith("_"))
            raise AttributeError(f"the ranks' class has no method {method_name!r}; it has {', '.join(known)}") from None
        return method.remote(*args, **kwargs)

    def _get(self, method_name: str, output: Any) -> Any:
        timeout = self._call_timeout
        refs = output if isinstance(output, list) else [output]
        try:
            return progress.get(output, timeout=timeout, describe=CallProgress(method_name, refs, self._workers))
        except RayTaskError:
            raise  # the method's own exception, which may be of any kind
        except RayActorError as error:
            died = rank_died(error, self._workers)
            if died is error:
                raise
            raise died from error
        except GetTimeoutError:
            raise late_call(method_name, refs, self._workers, timeout or 0) from None

    def _registered_methods(self) -> dict[str, RegisteredMethod]:
        if self.ray_cls_with_init is not None:
            return registered_methods(self.ray_cls_with_init.user_class)
        record = self._record()
        for worker in self._workers:
            restore_signatures(worker, record.signatures)
        return unpickle_methods(record.methods)

    def _find_master(self) -> tuple[str, str]:
        if self._master is None:
            record = self._record()
            self._master = record.master_addr, record.master_port
        return self._master

    def _record(self) -> group_record.GroupRecord:
        return group_record.wait_for_record(actor_id(self._workers[0]), timeout=self._record_timeout)


def _incarnation(names: Sequence[str]) -> int | None:
    """Which incarnation of a WorkerGroup ranks of these names are; ``None`` if they are no WorkerGroup's."""
    first = RankName.parse(names[0]) if names else None
    return first.incarnation if first is not None else None


def _master(address: str | None, port: str | None) -> tuple[str, str] | None:
    if address is None and port is None:
        return None
    if address is None or port is None:
        raise ValueError("give both master_addr and master_port, or neither, and rank 0 chooses them")
    return address, str(port)


def _gpu_share(pool: RayResourcePool, use_gpu: bool | None) -> float:
    if use_gpu and not pool.use_gpu:
        raise ValueError("use_gpu=True needs a pool with GPUs: make the RayResourcePool with use_gpu=True")
    wanted = pool.use_gpu if use_gpu is None else use_gpu
    return 1 / pool.max_colocate_count if wanted else 0


def _worker_names(pool: RayResourcePool, rank_class: RayClassWithInitArgs, prefix: str) -> list[str]:
    """verl's names: prefix, class, and which process of which entry of the pool, as in ``Ab3xYzActor_0:3``."""
    name = f"{prefix}{rank_class.user_class.__name__}"
    return [f"{name}_{node}:{local_rank}" for node, count in enumerate(pool.store) for local_rank in range(count)]


def _find_ranks(
    names: Sequence[str] | None, handles: Sequence[ActorHandle] | None
) -> tuple[list[ActorHandle], list[str]]:
    if handles is None:
        if not names:
            raise ValueError("a group without a resource_pool needs worker_names or worker_handles of its ranks")
        handles = [ray.get_actor(name) for name in names]
    return list(handles), list(names or [])
