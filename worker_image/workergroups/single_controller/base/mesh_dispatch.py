"""Dispatch over ranks that form a mesh: each data-parallel group of ranks shares one chunk.

A plan says which chunk each rank gets and which ranks' results are collected. A chunk is stored once, however many
ranks read it; ranks whose results are not collected are told to return nothing.

Meshes have a name, under which each rank registers its place (`Worker._register_dispatch_collect_info`). The older
names of tp x pp x dp meshes (3D_PROTO, 3D_ALL_MICRO_DP, 3D_PP_ONLY) use the places that ranks register with
`Worker.register_parallel_ranks`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from .dispatch import DispatchFns, concat, dispatch_one_to_all, split_arguments, with_discards, with_padding
from .parallel_ranks import ParallelRanks
from .worker_group import WorkerGroup


@dataclass(frozen=True)
class MeshPlan:
    """Which rank gets which chunk, and which ranks' results are collected."""

    chunk_of_rank: list[int]
    collected: list[int]
    """The ranks whose results are collected, in the order of the result."""

    @property
    def chunks(self) -> int:
        """The number of chunks."""
        return max(self.chunk_of_rank) + 1

    @property
    def discards(self) -> list[bool]:
        """For each rank, whether its result is not collected."""
        collected = set(self.collected)
        return [rank not in collected for rank in range(len(self.chunk_of_rank))]

    @classmethod
    def of_mesh(cls, dp_ranks: Sequence[int], is_collect: Sequence[bool]) -> MeshPlan:
        """Split by the mesh's dp ranks and collect from the ranks that registered to be collected, in dp order."""
        collected = [rank for rank, collects in enumerate(is_collect) if collects]
        return cls(list(dp_ranks), sorted(collected, key=lambda rank: dp_ranks[rank]))

    @classmethod
    def of_3d_proto(cls, places: Sequence[ParallelRanks]) -> MeshPlan:
        """Split by dp; collect from tp 0 of the last pipeline stage."""
        last_stage = max(place.pp_rank for place in places)
        return cls.of_mesh(
            [place.dp_rank for place in places],
            [place.tp_rank == 0 and place.pp_rank == last_stage for place in places],
        )

    @classmethod
    def of_3d_all_micro_dp(cls, places: Sequence[ParallelRanks]) -> MeshPlan:
        """Split by the micro dp groups of all dp groups; collect from the first rank of each."""
        micro_size = 1 + max(place.micro_dp_rank for place in places)
        chunk_of_rank = [place.dp_rank * micro_size + place.micro_dp_rank for place in places]
        return cls.of_mesh(
            chunk_of_rank, [chunk not in chunk_of_rank[:rank] for rank, chunk in enumerate(chunk_of_rank)]
        )

    @classmethod
    def of_3d_pp_only(cls, places: Sequence[ParallelRanks]) -> MeshPlan:
        """Give all ranks the same; collect from tp 0 and dp 0 of each pipeline stage."""
        collected = [rank for rank, place in enumerate(places) if place.tp_rank == place.dp_rank == 0]
        return cls([0] * len(places), sorted(collected, key=lambda rank: places[rank].pp_rank))


def make_nd_compute_dataproto_dispatch_fn(mesh_name: str) -> DispatchFns:
    """Return the mode for methods of ranks that form the mesh of that name: one chunk per dp rank, joined results."""
    plan = partial(_plan_of_mesh, mesh_name)
    return {"dispatch_fn": partial(_dispatch_chunks, plan), "collect_fn": partial(_collect_joined, plan)}


def fns_of_3d() -> dict[str, DispatchFns]:
    """Return the functions of verl's modes for Megatron's ranks, by name."""
    chunked = {"3D_PROTO": MeshPlan.of_3d_proto, "3D_ALL_MICRO_DP": MeshPlan.of_3d_all_micro_dp}
    plans = {name: partial(_plan_of_3d, name, of_places) for name, of_places in chunked.items()}
    same = partial(_plan_of_3d, "3D_PP_ONLY", MeshPlan.of_3d_pp_only)
    return {
        name: DispatchFns(dispatch_fn=partial(_dispatch_chunks, plan), collect_fn=partial(_collect_joined, plan))
        for name, plan in plans.items()
    } | {"3D_PP_ONLY": {"dispatch_fn": partial(_dispatch_same, same), "collect_fn": partial(_collect_list, same)}}


PlanOf = Callable[[WorkerGroup], MeshPlan]


def _dispatch_chunks(plan_of: PlanOf, group: WorkerGroup, /, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
    plan = plan_of(group)
    chunked_args, chunked_kwargs, padding = split_arguments(plan.chunks, args, kwargs)
    readers = Counter(plan.chunk_of_rank)

    def spread(chunks: list[Any]) -> list[Any]:
        stored = [group.share(chunk) if readers[index] > 1 else chunk for index, chunk in enumerate(chunks)]
        return [stored[index] for index in plan.chunk_of_rank]

    spread_kwargs = {key: spread(chunks) for key, chunks in chunked_kwargs.items()}
    noted_kwargs = with_padding(with_discards(spread_kwargs, plan.discards), padding)
    return [spread(chunks) for chunks in chunked_args], noted_kwargs


def _dispatch_same(plan_of: PlanOf, group: WorkerGroup, /, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
    same_args, same_kwargs = dispatch_one_to_all(group, *args, **kwargs)
    return same_args, with_discards(same_kwargs, plan_of(group).discards)


def _collect_joined(plan_of: PlanOf, group: WorkerGroup, output: Sequence[Any]) -> Any:
    return concat(_collect_list(plan_of, group, output))


def _collect_list(plan_of: PlanOf, group: WorkerGroup, output: Sequence[Any]) -> list[Any]:
    return [output[rank] for rank in plan_of(group).collected]


def _plan_of_mesh(mesh_name: str, group: Any) -> MeshPlan:
    plan: MeshPlan | None = group._mesh_plans.get(mesh_name)
    if plan is None:
        group._dispatch_info[mesh_name] = group._query_dispatch_info(mesh_name)
        group._collect_info[mesh_name] = group._query_collect_info(mesh_name)
        plan = MeshPlan.of_mesh(group._dispatch_info[mesh_name], group._collect_info[mesh_name])
        group._mesh_plans[mesh_name] = plan
    return plan


def _plan_of_3d(name: str, make: Callable[[Sequence[ParallelRanks]], MeshPlan], group: Any) -> MeshPlan:
    plan: MeshPlan | None = group._mesh_plans.get(name)
    if plan is None:
        plan = group._mesh_plans[name] = make(group._query_parallel_ranks())
    return plan
