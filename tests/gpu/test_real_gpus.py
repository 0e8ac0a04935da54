"""What only real GPUs can show: NCCL in a pool's preflight, and the devices of ranks that are forks."""

import os
import signal
import time

import pytest

from tests.ray.agent.alone.test_warm_ranks import call, is_ready, next_of, until_warm
from tests.ray.agent.planned import Group, pool
from tests.ray.agent.test_executor import all_ready, ranks
from workergroups_api.plan import PlannedPreflight

CODE = """
import os
import torch
import workergroups

class Accumulator(workergroups.Worker):
    def whole_sum(self):
        workergroups.init_process_group()
        total = torch.tensor([float(self.rank + 1)], device="cuda")
        torch.distributed.all_reduce(total)
        torch.distributed.destroy_process_group()
        return total.item(), torch.cuda.device_count(), os.environ["CUDA_VISIBLE_DEVICES"]

    def parent(self):
        return os.getpid(), os.getppid()

    def server(self):
        return os.environ["WORKERGROUPS_WARM"]
"""


@pytest.fixture
def planned(gpus):
    def build(**more):
        changes = {"processes_per_node": gpus, "bundle": {"CPU": 4.0, "GPU": 1.0}, "max_colocate_count": 4}
        return pool(nodes=1, **more).model_copy(update=changes)

    return build


@pytest.mark.parametrize("level", ["Basic", "Fabric"])
def test_a_preflight_passes_and_measures_nccl(agent, planned, gpus, level):
    began = time.monotonic()
    reports = agent.until(
        lambda said: (
            said.pools["actors"].report.preflight
            and said.pools["actors"].report.preflight.state in ("Passed", "Failed")
        ),
        pools=(planned(preflight=PlannedPreflight(level=level, writable=("/tmp",))),),
        seconds=240,
    )
    found = reports.pools["actors"].report.preflight
    print(f"{level}: {time.monotonic() - began:.1f} s: {found.message}")
    assert found.state == "Passed", found
    assert ("GB/s bus bandwidth (nccl, " in (found.message or "")) == (level == "Fabric")


def test_forked_ranks_use_their_own_devices_and_meet_through_nccl(agent, planned, gpus):
    first = Group(bundles=(("actors", 0, gpus),), code=CODE)
    agent.until(all_ready, first, pools=(planned(),), seconds=150)
    expected = [(gpus * (gpus + 1) / 2, 1, str(rank)) for rank in range(gpus)]
    assert call("whole_sum") == expected
    server = until_warm()

    os.kill(call("parent")[1][0], signal.SIGKILL)
    killed = time.monotonic()
    agent.go_on_until(lambda said: ranks(said).failures, 20)
    second = next_of(first)
    agent.until(is_ready(second), second, pools=(planned(),), seconds=150)
    assert {parent for _, parent in call("parent")} == {server}
    print(f"{time.monotonic() - killed:.1f} s from the kill to the ranks of the next incarnation")
    assert call("whole_sum") == expected
    print(f"{time.monotonic() - killed:.1f} s from the kill to their first sum by NCCL")
