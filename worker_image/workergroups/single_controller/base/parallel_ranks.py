"""A rank's place in a Megatron-style mesh."""

from __future__ import annotations

from typing import NamedTuple


class ParallelRanks(NamedTuple):
    """A rank's place among its tensor-, pipeline- and data-parallel groups."""

    tp_rank: int
    pp_rank: int
    dp_rank: int
    micro_dp_rank: int = 0
    """Which of the generation groups that share one training dp group the rank belongs to (3D_ALL_MICRO_DP)."""
