"""DataProto between a driver and ranks: dispatch by batch, meshes, futures, padding."""

from __future__ import annotations

import os

import pytest
import ray
import torch

from workergroups import (
    DataProto,
    DataProtoFuture,
    Dispatch,
    RayClassWithInitArgs,
    RayResourcePool,
    RayWorkerGroup,
    Worker,
    init_process_group,
    register,
)
from workergroups.single_controller.base.decorator import make_nd_compute_dataproto_dispatch_fn

pytestmark = pytest.mark.usefixtures("local_ray")


class Model(Worker):
    """Two dp ranks of two tp ranks each; the results are those of tp 0."""

    def __init__(self) -> None:
        super().__init__()
        self.dp_rank, self.tp_rank = divmod(self.rank, 2)
        self._register_dispatch_collect_info("infer", self.dp_rank, is_collect=self.tp_rank == 0)
        self.register_parallel_ranks(tp_rank=self.tp_rank, pp_rank=0, dp_rank=self.dp_rank)
        self.meet()

    def meet(self):
        init_process_group()
        init_process_group()  # as when a role of the same process has done so before
        ranks = torch.tensor([self.rank])
        torch.distributed.all_reduce(ranks)
        self.sum_of_ranks = ranks.item()

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def get_sum_of_ranks(self):
        return self.sum_of_ranks, torch.distributed.get_rank()

    @register(dispatch_mode=Dispatch.DP_COMPUTE_PROTO)
    def add_rank(self, data):
        data.batch["a"] += self.rank
        return data

    @register(dispatch_mode=Dispatch.DP_COMPUTE_PROTO, blocking=False)
    def add_rank_later(self, data):
        data.batch["a"] += self.rank
        return data

    @register(dispatch_mode=Dispatch.DP_COMPUTE_METRIC)
    def rows(self, data):
        return len(data)

    @register(dispatch_mode=make_nd_compute_dataproto_dispatch_fn("infer"))
    def generate(self, data):
        data.batch["a"] += (self.tp_rank + 1) * self.dp_rank
        return data

    @register(dispatch_mode=Dispatch["3D_PROTO"])
    def train(self, data):
        data.meta_info["metrics"] = {"rows": len(data)}
        return data


@pytest.fixture(scope="module")
def group(local_ray):
    with (
        RayResourcePool([4], use_gpu=False, max_colocate_count=1) as pool,
        RayWorkerGroup(pool, RayClassWithInitArgs(Model), worker_env={"OMP_NUM_THREADS": "1"}) as group,
    ):
        yield group


def zeros(rows, **arguments):
    return DataProto.from_dict({"a": torch.zeros(rows)}, {"n": [str(i) for i in range(rows)]}, **arguments)


def test_ranks_meet_at_the_master_port_from_their_constructors(group):
    assert group.get_sum_of_ranks() == [(6, 0), (6, 1), (6, 2), (6, 3)]


def test_each_rank_gets_its_chunk_and_may_write_to_it(group):
    data = zeros(8)
    output = group.add_rank(data)
    assert output.batch["a"].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert output.non_tensor_batch["n"].tolist() == [str(i) for i in range(8)]
    assert data.batch["a"].tolist() == [0] * 8


@pytest.mark.parametrize("rows", [1, 5, 10])
def test_padding_is_cut_off_the_result_and_the_callers_batch_keeps_its_length(group, rows):
    data = zeros(rows, auto_padding=True)
    output = group.add_rank(data=data)
    assert output.non_tensor_batch["n"].tolist() == data.non_tensor_batch["n"].tolist()
    assert len(data) == rows
    assert group.rows(data) == [-(-rows // 4)] * 4


def test_futures_go_from_call_to_call_and_are_cut_as_well(group):
    first = group.add_rank_later(zeros(8))
    assert isinstance(first, DataProtoFuture)
    assert group.add_rank(first).batch["a"].tolist() == [0, 0, 2, 2, 4, 4, 6, 6]
    padded = group.add_rank_later(zeros(5, auto_padding=True))
    assert len(padded.get()) == 5


def test_a_mesh_gives_one_chunk_to_each_dp_rank_and_collects_once(group, monkeypatch):
    puts = []
    put = ray.put
    monkeypatch.setattr(ray, "put", lambda value: puts.append(value) or put(value))
    output = group.generate(zeros(4))
    assert output.batch["a"].tolist() == [0, 0, 1, 1]
    assert group.generate(data=zeros(2)).batch["a"].tolist() == [0, 1]
    assert [len(chunk) for chunk in puts] == [2, 2, 1, 1]
    assert group._dispatch_info["infer"] == [0, 0, 1, 1]
    assert group.train(zeros(4)).meta_info["metrics"] == {"rows": [2, 2]}


def test_ranks_whose_results_are_not_collected_send_nothing(group):
    fns = make_nd_compute_dataproto_dispatch_fn("infer")
    args, kwargs = fns["dispatch_fn"](group, zeros(4))
    output = ray.get(group.execute_all("generate", *args, **kwargs))
    assert [type(part).__name__ for part in output] == ["DataProto", "NoneType", "DataProto", "NoneType"]


def rows_and_rank(worker, data):
    return DataProto.from_dict({"rank": torch.full((len(data),), worker.rank)}, meta_info={"pid": 0})


def test_a_function_goes_to_the_ranks_with_their_chunks(group):
    output = group.execute_with_func_generator(rows_and_rank, zeros(4))
    assert output.batch["rank"].tolist() == [0, 1, 2, 3]
    assert group.execute_func_rank_zero(os.path.basename, "/a/b") == "b"


def test_batches_that_do_not_divide_are_refused_before_any_call(group):
    with pytest.raises(ValueError, match=r"argument 0 has 5 rows, .*pass 8 rows, or a batch of DataProto.from_dict"):
        group.add_rank(zeros(5))
