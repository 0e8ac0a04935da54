"""The error of a rank that waits for others in torch.distributed."""

from __future__ import annotations

import pytest

from workergroups import (
    RayClassWithInitArgs,
    RayResourcePool,
    RayWorkerGroup,
    RendezvousTimeoutError,
    Worker,
    init_process_group,
)


class Loner(Worker):
    def meet(self, timeout):
        init_process_group(timeout=timeout)


@pytest.mark.usefixtures("local_ray")
def test_a_rank_that_waits_too_long_for_others_says_where_and_how_long():
    with (
        RayResourcePool([2], use_gpu=False, max_colocate_count=1) as pool,
        RayWorkerGroup(pool, RayClassWithInitArgs(Loner)) as group,
        pytest.raises(RendezvousTimeoutError, match=r"rank 0 of 2 did not meet all others at [\d.]+:\d+ within 2 s"),
    ):
        group.execute_rank_zero_sync("meet", 2)
