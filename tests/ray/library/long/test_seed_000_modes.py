"""The table of transfer protocols in seed 000, row by row, on eight actors with their places in a tp x pp x dp mesh."""

from __future__ import annotations

import pytest
import ray
import torch

from workergroups import DataProto
from workergroups.single_controller.base import Worker
from workergroups.single_controller.base.decorator import Dispatch, register
from workergroups.single_controller.ray.base import RayClassWithInitArgs, RayResourcePool, RayWorkerGroup

pytestmark = pytest.mark.usefixtures("local_ray")

# Of ranks 0 to 7. Rank 6 is t=0, p=1, d=1.
TRAINING = [{"tp_rank": t, "pp_rank": p, "dp_rank": d} for p in range(2) for d in range(2) for t in range(2)]
# Training with four tensor parallel ranks; for generation, these are two micro dp groups of two ranks.
GENERATION = [{"tp_rank": t, "pp_rank": 0, "dp_rank": d, "micro_dp_rank": t // 2} for d in range(2) for t in range(4)]


@ray.remote
class Model(Worker):
    def __init__(self, places) -> None:
        super().__init__()
        self.register_parallel_ranks(**places[self.rank])

    def compute(self, data):
        """Remember the rows, and return them with this rank's number."""
        self.rows = data.batch["row"].tolist()
        return DataProto.from_dict({"row": data.batch["row"], "rank": torch.full((len(data),), self.rank)})

    @register(dispatch_mode=Dispatch["3D_PROTO"])
    def train(self, data):
        return self.compute(data)

    @register(dispatch_mode=Dispatch["3D_ALL_MICRO_DP"])
    def generate(self, data):
        return self.compute(data)

    @register(dispatch_mode=Dispatch.DP_PROTO)
    def score(self, data):
        return self.compute(data)

    @register(dispatch_mode=Dispatch["3D_PP_ONLY"])
    def weight_names(self, prefix):
        self.prefix = prefix
        return f"{prefix} of rank {self.rank}"

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def seen(self, name):
        return getattr(self, name)

    @register(dispatch_mode=Dispatch.ALL_TO_ALL)
    def debug(self, x):
        return self.rank, x


@pytest.fixture(scope="module")
def pool(local_ray):
    with RayResourcePool([4, 4], use_gpu=True) as pool:
        yield pool


@pytest.fixture(scope="module")
def training(pool):
    with RayWorkerGroup(pool, RayClassWithInitArgs(cls=Model, places=TRAINING)) as group:
        yield group


@pytest.fixture(scope="module")
def generation(pool):
    with RayWorkerGroup(pool, RayClassWithInitArgs(cls=Model, places=GENERATION)) as group:
        yield group


def rows():
    return DataProto.from_dict({"row": torch.arange(8)})


def columns(output):
    return output.batch["row"].tolist(), output.batch["rank"].tolist()


def test_3d_proto_splits_by_dp_and_collects_from_the_last_stage(training):
    assert columns(training.train(rows())) == (list(range(8)), [4, 4, 4, 4, 6, 6, 6, 6])
    assert training.seen("rows") == [[0, 1, 2, 3], [0, 1, 2, 3], [4, 5, 6, 7], [4, 5, 6, 7]] * 2


def test_3d_pp_only_collects_one_rank_of_each_stage(training):
    assert training.weight_names("weights") == ["weights of rank 0", "weights of rank 4"]
    assert training.seen("prefix") == ["weights"] * 8


def test_3d_all_micro_dp_splits_each_dp_group_further(generation):
    assert columns(generation.generate(rows())) == (list(range(8)), [0, 0, 2, 2, 4, 4, 6, 6])
    assert generation.seen("rows") == [[0, 1], [0, 1], [2, 3], [2, 3], [4, 5], [4, 5], [6, 7], [6, 7]]


def test_dp_proto_splits_over_all_ranks_and_collects_from_all(training):
    assert columns(training.score(rows())) == (list(range(8)), list(range(8)))


def test_all_to_all_passes_what_each_rank_is_given(training):
    assert training.debug([rank * 10 for rank in range(8)]) == [(rank, rank * 10) for rank in range(8)]
