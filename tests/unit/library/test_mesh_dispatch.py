"""Who gets which chunk, and whose results count, in meshes of ranks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workergroups import Dispatch, Worker
from workergroups.single_controller.base.dispatch import take_discard
from workergroups.single_controller.base.mesh_dispatch import MeshPlan
from workergroups.single_controller.base.parallel_ranks import ParallelRanks
from workergroups.single_controller.base.registry import (
    get_predefined_dispatch_fn,
    register_dispatch_mode,
    update_dispatch_mode,
)

TP2_PP2_DP2 = [ParallelRanks(tp, pp, dp) for pp in range(2) for dp in range(2) for tp in range(2)]


class Batch:
    """A batch without tensors."""

    def __init__(self, rows):
        self.rows = list(rows)

    def __len__(self):
        return len(self.rows)

    def chunk(self, chunks):
        size = len(self) // chunks
        return [Batch(self.rows[i * size : (i + 1) * size]) for i in range(chunks)]


class MeshGroup:
    """A group that answers queries about its mesh, and counts what is stored."""

    def __init__(self, places=None, dp_ranks=None, collects=None):
        self._mesh_plans, self._dispatch_info, self._collect_info = {}, {}, {}
        self._query_parallel_ranks = lambda: places
        self._query_dispatch_info = lambda mesh: dp_ranks
        self._query_collect_info = lambda mesh: collects
        self.world_size = len(places or dp_ranks)
        self.stored = []

    def share(self, value):
        self.stored.append(value)
        return value


def dispatch(mode, group, *args, **kwargs):
    return get_predefined_dispatch_fn(Dispatch[mode])["dispatch_fn"](group, *args, **kwargs)


def collect(mode, group, output):
    return get_predefined_dispatch_fn(Dispatch[mode])["collect_fn"](group, output)


def discards(kwargs):
    """Return what each of 8 ranks is told of its result, once its keywords are its own."""
    return [take_discard({key: values[rank] for key, values in kwargs.items()}) for rank in range(8)]


def test_a_dp_group_shares_one_stored_chunk():
    group = MeshGroup(TP2_PP2_DP2)
    (chunks,), kwargs = dispatch("3D_PROTO", group, Batch(range(4)))
    assert [chunk.rows for chunk in chunks] == [[0, 1], [0, 1], [2, 3], [2, 3]] * 2
    assert [chunk.rows for chunk in group.stored] == [[0, 1], [2, 3]]
    assert discards(kwargs) == [True, True, True, True, False, True, False, True]


def test_keywords_alone_are_dispatched_as_well():
    _, kwargs = dispatch("3D_PROTO", MeshGroup(TP2_PP2_DP2), data=Batch(range(4)))
    assert [chunk.rows for chunk in kwargs["data"]] == [[0, 1], [0, 1], [2, 3], [2, 3]] * 2


def test_each_pipeline_stage_answers_once():
    group = MeshGroup(TP2_PP2_DP2)
    (same,), kwargs = dispatch("3D_PP_ONLY", group, "weights")
    assert same == ["weights"] * 8
    assert discards(kwargs) == [rank not in (0, 4) for rank in range(8)]
    assert collect("3D_PP_ONLY", group, [f"stage of rank {rank}" for rank in range(8)]) == [
        "stage of rank 0",
        "stage of rank 4",
    ]


def test_micro_dp_groups_split_a_dp_group_further():
    # Training with tp 4 and dp 2; for generation, the 4 ranks of a dp group are 2 micro dp groups of tp 2.
    places = [ParallelRanks(tp, 0, dp, micro_dp_rank=tp // 2) for dp in range(2) for tp in range(4)]
    plan = MeshPlan.of_3d_all_micro_dp(places)
    assert plan.chunk_of_rank == [0, 0, 1, 1, 2, 2, 3, 3]
    assert plan.collected == [0, 2, 4, 6]


def test_results_come_in_the_order_of_the_data_whatever_the_order_of_the_ranks():
    plan = MeshPlan.of_mesh([1, 0, 1, 0], [True, True, False, False])
    assert plan.chunk_of_rank == [1, 0, 1, 0]
    assert plan.collected == [1, 0]


@given(tp=st.integers(1, 4), pp=st.integers(1, 4), dp=st.integers(1, 4), order=st.randoms())
def test_a_3d_mesh_returns_each_row_once_and_in_order(tp, pp, dp, order):
    places = [ParallelRanks(t, p, d) for t in range(tp) for p in range(pp) for d in range(dp)]
    order.shuffle(places)
    plan = MeshPlan.of_3d_proto(places)
    rows = range(dp * 3)
    chunks = Batch(rows).chunk(plan.chunks)
    returned = [chunks[plan.chunk_of_rank[rank]] for rank in plan.collected]
    assert [row for chunk in returned for row in chunk.rows] == list(rows)


def test_dp_compute_wants_one_element_per_rank():
    group = MeshGroup(dp_ranks=[0, 1], collects=[True, True])
    assert dispatch("DP_COMPUTE", group, (1, 2), x=[3, 4]) == (([1, 2],), {"x": [3, 4]})
    with pytest.raises(ValueError, match=r"argument 'x' must be .* each of 2 ranks, not 3 elements"):
        dispatch("DP_COMPUTE", group, x=[1, 2, 3])
    with pytest.raises(ValueError, match=r"argument 0 must be .* not a str"):
        dispatch("DP_COMPUTE", group, "ab")


def test_batches_that_cannot_be_split_say_so():
    group = MeshGroup(dp_ranks=[0, 1], collects=[True, True])
    with pytest.raises(ValueError, match=r"argument 0 has 3 rows, .* into 2 chunks .*: pass 4 rows"):
        dispatch("DP_COMPUTE_PROTO", group, Batch(range(3)))
    with pytest.raises(TypeError, match="argument 'path' is a str, which cannot be split over ranks"):
        dispatch("DP_COMPUTE_PROTO", group, path="/models")
    with pytest.raises(TypeError, match="must be the function"):
        dispatch("DP_COMPUTE_PROTO_WITH_FUNC", group, Batch(range(4)))


def test_modes_can_be_added_and_changed():
    register_dispatch_mode("every_other", lambda group, x: ((x,), {}), lambda group, output: output[::2])
    assert collect("EVERY_OTHER", None, [1, 2, 3]) == [1, 3]
    update_dispatch_mode(Dispatch.EVERY_OTHER, lambda group, x: ((x,), {}), lambda group, output: output[1::2])
    assert collect("EVERY_OTHER", None, [1, 2, 3]) == [2]
    with pytest.raises(ValueError, match="exists already"):
        register_dispatch_mode("every_other", None, None)


def test_a_rank_that_never_registered_its_place_says_what_to_call(monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.setenv(name, "1")
    worker = Worker()
    worker._register_dispatch_collect_info("train", dp_rank=3, is_collect=True)
    assert worker._query_dispatch_info("train") == 3
    assert worker._query_collect_info("train") is True
    with pytest.raises(ValueError, match=r"mesh 'infer' is not registered in Worker, which has train"):
        worker._query_dispatch_info("infer")
    with pytest.raises(ValueError, match="'train' is registered already"):
        worker._register_dispatch_collect_info("train", dp_rank=0, is_collect=True)
    with pytest.raises(RuntimeError, match="call register_parallel_ranks first"):
        worker._query_parallel_ranks()


def test_a_worker_takes_over_the_place_of_another_in_its_process(monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.setenv(name, "1")
    reference, fused = Worker(), Worker()
    with pytest.raises(ValueError, match="has registered no mesh"):
        fused.set_dispatch_collect("ref", **reference.get_dispatch_collect())
    reference._register_dispatch_collect_info("actor", dp_rank=3, is_collect=False)
    fused.set_dispatch_collect("ref", **reference.get_dispatch_collect())
    assert (fused._query_dispatch_info("ref"), fused._query_collect_info("ref")) == (3, False)
    with pytest.raises(ValueError, match="'ref' is registered already"):
        fused.set_dispatch_collect("ref", **reference.get_dispatch_collect())
