"""Weights from trainer to rollout ranks, straight from the shards of one to those of the other."""

from .comparing import check_weights
from .parts import WeightShard
from .published import Passport, PublishedWeights
from .weights import Weights

__all__ = ["Passport", "PublishedWeights", "WeightShard", "Weights", "check_weights"]
