"""What a worker group and its pool are, before anything runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from workergroups.errors import InvalidValueError

from .call_forms import first_by_name


class ResourcePool:
    """Processes on nodes: entry i of ``process_on_nodes`` is the number of processes on node i.

    Args:
        process_on_nodes: Processes per node; nodes may differ.
        max_colocate_count: How many worker groups may share one process's resources.
        n_gpus_per_node: GPUs of one node; kept for verl's signature, and compared when pools are merged.
    """

    def __init__(
        self,
        process_on_nodes: list[int] | None = None,
        max_colocate_count: int = 10,
        n_gpus_per_node: int = 8,
    ) -> None:
        self._store = list(process_on_nodes or [])
        if any(count < 1 for count in self._store):
            raise InvalidValueError(f"process_on_nodes must be positive numbers of processes, not {self._store}")
        if max_colocate_count < 1:
            raise InvalidValueError(f"max_colocate_count must be at least 1, not {max_colocate_count}")
        self.max_colocate_count = max_colocate_count
        self.n_gpus_per_node = n_gpus_per_node

    def add_node(self, process_count: int) -> None:
        """Add a node with that many processes."""
        self._store.append(process_count)

    def __call__(self) -> list[int]:
        """Return the same as ``store``."""
        return self._store

    @property
    def store(self) -> list[int]:
        """Processes per node."""
        return self._store

    @property
    def world_size(self) -> int:
        """The number of processes on all nodes."""
        return sum(self._store)

    def local_world_size_list(self) -> list[int]:
        """For each process in rank order, the number of the pool's processes on its node."""
        return [count for count in self._store for _ in range(count)]

    def local_rank_list(self) -> list[int]:
        """For each process in rank order, its number among the pool's processes on its node."""
        return [local_rank for count in self._store for local_rank in range(count)]


class ClassWithInitArgs:
    """A class and the arguments of its constructor, to be called later and elsewhere."""

    @first_by_name("cls")
    def __init__(self, cls: Any, /, *args: Any, **kwargs: Any) -> None:
        self.cls = cls
        self.args = args
        self.kwargs = kwargs

    def __call__(self) -> Any:
        """Make an instance."""
        return self.cls(*self.args, **self.kwargs)


class WorkerGroup(ABC):
    """Ranks that a driver calls together: a subclass says how a method runs on them.

    `decorator.bound_methods` are those that its ranks' class registers.
    """

    name_prefix = ""
    """Begins the ranks' names, if they have names."""

    def __init__(self) -> None:
        # The places that the ranks have registered in each mesh, and the plans made from them.
        self._dispatch_info: dict[str, list[int]] = {}
        self._collect_info: dict[str, list[bool]] = {}
        self._mesh_plans: dict[str, Any] = {}

    @property
    @abstractmethod
    def world_size(self) -> int:
        """The number of ranks."""

    @abstractmethod
    def execute_all(self, method_name: str, /, *args: Any, **kwargs: Any) -> list[Any]:
        """Start a method on all ranks; futures in rank order.

        When every argument is a list of ``world_size``, element i goes to rank i. Otherwise, all ranks get the same.
        """

    @abstractmethod
    def execute_rank_zero(self, method_name: str, /, *args: Any, **kwargs: Any) -> Any:
        """Start a method on rank 0 with the arguments as they are; its future."""

    @abstractmethod
    def share(self, value: Any) -> Any:
        """Store a value once, so that many ranks can read it; what to pass as an argument instead of it."""

    def _for_one_call(self) -> WorkerGroup:
        """Return the group on which one call is dispatched, run and collected.

        A subclass whose handles get other ranks returns a group that keeps the ranks that it has now.
        """
        return self

    @abstractmethod
    def _get(self, method_name: str, output: Any) -> Any:
        """Wait for what ``execute_all`` or ``execute_rank_zero`` returned."""
