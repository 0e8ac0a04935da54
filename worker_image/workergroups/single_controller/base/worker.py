"""`Worker`: the base class of ranks. It knows its rank from the environment that its group set up."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from workergroups.errors import InvalidValueError
from workergroups.node.notice import Notice

from .call_forms import first_by_name
from .decorator import Dispatch, Execute, register
from .parallel_ranks import ParallelRanks


class Worker:
    """One rank of a worker group.

    A rank's process has these environment variables before its constructor runs (whether or not its class is a
    `Worker`): ``RANK`` and ``WORLD_SIZE``; ``MASTER_ADDR`` and ``MASTER_PORT``, rank 0's node and a port that is kept
    free for rank 0's process; ``RAY_LOCAL_RANK`` and ``RAY_LOCAL_WORLD_SIZE``, the rank's place among the group's ranks
    on its node; ``LOCAL_RANK`` and ``LOCAL_WORLD_SIZE``, its place among the processes that see the same devices, which
    is 0 of 1 since each rank sees its own devices only (so ``torch.cuda.set_device(LOCAL_RANK)`` is right);
    ``WG_PREFIX``; and the accelerator's visible-devices variable.

    A class may have a method ``on_notice(notice)``, a coroutine or not, for what a rank has to do before it ends, with
    its node or with its group, such as to save what it alone has. It is called between the calls of drivers. The rank
    does not end before it has returned, or the notice's time is over; what it raises is in the rank's log.

    Args:
        cuda_visible_devices: Overrides the visible devices, a comma-separated list of indices.

    Raises:
        RuntimeError: The process is no rank: nothing set the variables.
    """

    def __init__(self, cuda_visible_devices: str | None = None) -> None:
        try:
            self._rank = int(os.environ["RANK"])
            self._world_size = int(os.environ["WORLD_SIZE"])
            self._master_addr = os.environ["MASTER_ADDR"]
            self._master_port = os.environ["MASTER_PORT"]
        except KeyError as missing:
            raise RuntimeError(
                f"{type(self).__name__} is a Worker and needs the environment of a rank, but {missing} is not set: "
                "create it through a RayWorkerGroup, or set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT"
            ) from None
        if cuda_visible_devices is not None:
            os.environ["CUDA_VISIBLE_DEVICES"] = cuda_visible_devices

    @property
    def rank(self) -> int:
        """This rank's number within its group, from 0.

        Raises:
            RuntimeError: The class's constructor has not called that of this class yet.
        """
        self._check_is_initialized()
        return self._rank

    @property
    def world_size(self) -> int:
        """The number of ranks in the group. Raises RuntimeError as `rank` does."""
        self._check_is_initialized()
        return self._world_size

    def _check_is_initialized(self) -> None:
        if "_world_size" not in self.__dict__:
            raise RuntimeError(f"{type(self).__name__}.__init__ must call super().__init__() before it uses its rank")

    @property
    def notice(self) -> Notice | None:
        """The notice that this rank is about to end; ``None`` if there is none. A call that runs sees it, too."""
        from workergroups.announcements import notices

        return notices.of_this_rank()

    def get_master_addr_port(self) -> tuple[str, str]:
        """Return the address and port where the group's ranks meet, from ``MASTER_ADDR`` and ``MASTER_PORT``."""
        return self._master_addr, self._master_port

    def get_cuda_visible_devices(self) -> str:
        """Return the devices that this rank sees, as ``CUDA_VISIBLE_DEVICES`` gives them; ``"not set"`` by default."""
        return os.environ.get("CUDA_VISIBLE_DEVICES", "not set")

    def get_fused_worker_by_name(self, worker_name: str) -> Any:
        """Return the role of that name in this rank's process; ``None`` if there is none."""
        return self.__dict__.get("fused_worker_dict", {}).get(worker_name)

    @register(dispatch_mode=Dispatch.ALL_TO_ALL, execute_mode=Execute.RANK_ZERO)
    @first_by_name("func")
    def execute_func_rank_zero(self, func: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Run ``func(*args, **kwargs)`` in rank 0's process and return its result."""
        return func(*args, **kwargs)

    @register(dispatch_mode=Dispatch.DP_COMPUTE_PROTO_WITH_FUNC)
    def execute_with_func_generator(self, func: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Run ``func(worker, *args, **kwargs)`` on every rank, on its chunk of each batch; the results are joined."""
        return func(self, *args, **kwargs)

    def _register_dispatch_collect_info(self, mesh_name: str, dp_rank: int, is_collect: bool) -> None:
        """Register this rank's place in a mesh, for the modes that `make_nd_compute_dataproto_dispatch_fn` makes.

        Args:
            mesh_name: The mesh's name.
            dp_rank: Which chunk this rank gets.
            is_collect: Whether this rank's result is collected; set it for one rank of each dp rank.

        Raises:
            ValueError: The rank has registered for that mesh before.
        """
        meshes = self._meshes()
        if mesh_name in meshes:
            raise InvalidValueError(f"mesh {mesh_name!r} is registered already, as {meshes[mesh_name]}")
        meshes[mesh_name] = (dp_rank, is_collect)

    def get_dispatch_collect(self) -> dict[str, dict[str, Any]]:
        """Return this rank's place in all its meshes, in the form that ``set_dispatch_collect`` takes."""
        meshes = self._meshes()
        return {
            "dispatch_dp_rank": {name: dp_rank for name, (dp_rank, _) in meshes.items()},
            "collect_dp_rank": {name: is_collect for name, (_, is_collect) in meshes.items()},
        }

    def set_dispatch_collect(
        self, mesh_name: str, dispatch_dp_rank: dict[str, int], collect_dp_rank: dict[str, bool]
    ) -> None:
        """Take over another worker's place in its mesh, as its ``get_dispatch_collect`` gave it; of several, the last.

        Args:
            mesh_name: What the mesh is called here.
            dispatch_dp_rank: Which chunk the other worker gets, by mesh.
            collect_dp_rank: Whether its result is collected, by mesh.

        Raises:
            ValueError: This rank has a place in a mesh of that name, or the other worker has none.
        """
        if not dispatch_dp_rank or not collect_dp_rank:
            raise InvalidValueError(f"there is no place for mesh {mesh_name!r}: the worker has registered no mesh")
        *_, dp_rank = dispatch_dp_rank.values()
        *_, is_collect = collect_dp_rank.values()
        self._register_dispatch_collect_info(mesh_name, dp_rank, is_collect)

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def _query_dispatch_info(self, mesh_name: str) -> int:
        """Return which chunk this rank gets in that mesh."""
        return self._mesh(mesh_name)[0]

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def _query_collect_info(self, mesh_name: str) -> bool:
        """Return whether this rank's result is collected in that mesh."""
        return self._mesh(mesh_name)[1]

    def register_parallel_ranks(self, *, tp_rank: int, pp_rank: int, dp_rank: int, micro_dp_rank: int = 0) -> None:
        """Register this rank's place in a tp x pp x dp mesh, for 3D_PROTO, 3D_ALL_MICRO_DP and 3D_PP_ONLY."""
        self._parallel_ranks = ParallelRanks(tp_rank, pp_rank, dp_rank, micro_dp_rank)

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def _query_parallel_ranks(self) -> ParallelRanks:
        """Return this rank's place in the tp x pp x dp mesh."""
        try:
            return self._parallel_ranks
        except AttributeError:
            raise RuntimeError(
                f"{type(self).__name__} has no place in a tp x pp x dp mesh: call register_parallel_ranks first"
            ) from None

    def _mesh(self, mesh_name: str) -> tuple[int, bool]:
        try:
            return self._meshes()[mesh_name]
        except KeyError:
            raise InvalidValueError(
                f"mesh {mesh_name!r} is not registered in {type(self).__name__}, which has "
                f"{', '.join(self._meshes()) or 'none'}: call _register_dispatch_collect_info first"
            ) from None

    def _meshes(self) -> dict[str, tuple[int, bool]]:
        # Created on first use: a subclass may not call this class's constructor.
        meshes: dict[str, tuple[int, bool]] = self.__dict__.setdefault("_registered_meshes", {})
        return meshes
